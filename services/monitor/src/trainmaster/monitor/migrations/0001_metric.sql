-- What ranks reported at each step, and how far each job was when it was last heard. The
-- log does not hold this: it cannot be rebuilt. `value` may be NaN or infinite.
create table metric (
    job text not null,
    attempt int not null,
    rank int not null,
    step int not null,
    name text not null,
    value double precision not null,
    at timestamptz not null,
    primary key (job, attempt, name, rank, step)
);
create table progress (
    team text not null,
    job text not null,
    attempt int not null,
    step int not null,
    loss double precision,
    at timestamptz not null,
    primary key (team, job)
);
