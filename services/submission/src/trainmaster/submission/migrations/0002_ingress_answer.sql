-- What each id of each source was answered: said again, it is answered the same and
-- nothing is done again. Written after the deed and before the message is acknowledged.
create table ingress_answer (
    source text not null,
    id text not null,
    digest text not null,
    answer text not null,
    answered_at timestamptz not null default now(),
    primary key (source, id)
);
create index ingress_answer_age on ingress_answer (answered_at);
