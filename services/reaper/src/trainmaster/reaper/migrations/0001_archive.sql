create table archive (
    epoch int not null,
    seq bigint not null,
    stored_at timestamptz not null,
    job text not null,
    subject text not null,
    id text not null,
    body bytea not null,
    primary key (epoch, seq)
);
create index archive_by_job on archive (job, epoch, seq);
