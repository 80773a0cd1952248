-- Which job an Idempotency-Key was used for. Written before the job is on the log, so
-- that a repeated request always means the same job; the log says whether it got there.
create table idempotency_key (
    key text primary key check (length(key) between 1 and 200),
    body_digest text not null,
    team text not null,
    job text not null,
    created_at timestamptz not null default now()
);
