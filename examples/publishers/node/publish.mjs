// Submits a job, reports a metric, cancels, and prints what it is answered.
//
//   node publish.mjs CREDENTIALS JOB_FILE
//
// CREDENTIALS is the file that `tm sources add NAME` names. Nothing else is needed: no
// library of ours, no HTTP. A request is a CloudEvent on tm.in.<source>.<kind>; what
// became of it comes on tm.in_reply.<source>.<id>.

import { readFile } from "node:fs/promises";
import { randomUUID } from "node:crypto";
import { resolve, dirname } from "node:path";
import { connect, headers, JSONCodec } from "nats";

const json = JSONCodec();
const ANSWER_MS = 20_000;

// What each kind is called in the contract, proto/trainmaster/events/v1/ingress.proto.
const TYPES = {
  job_requested: "JobRequested",
  cancel_requested: "JobCancelRequested",
  metric_reported: "MetricReported",
  checkpoint_saved: "CheckpointSaved",
  node_reported: "NodeReported",
};

class Publisher {
  constructor(connection, source) {
    this.connection = connection;
    this.source = source;
    this.waiting = new Map();
  }

  static async open(path) {
    const told = JSON.parse(await readFile(path, "utf8"));
    const connection = await connect({
      servers: told.url,
      user: told.user,
      pass: told.password,
      inboxPrefix: told.inbox_prefix, // other inboxes may not be heard
    });
    const made = new Publisher(connection, told.source);
    made.listen();
    return made;
  }

  // Listen before the first request, or its answer is missed.
  listen() {
    this.connection.subscribe(`tm.in_reply.${this.source}.>`, {
      callback: (error, message) => {
        if (error) throw error;
        const answer = json.decode(message.data);
        console.log(JSON.stringify(answer));
        this.waiting.get(answer.request)?.(answer);
      },
    });
  }

  // Say something and wait for the answer. The id makes it safe to say it again: the
  // same id is acted on once. `binary` and structured mode mean the same.
  async say(kind, data, { id = randomUUID(), binary = true } = {}) {
    const type = `trainmaster.events.v1.${TYPES[kind]}`;
    const attributes = { specversion: "1.0", id, source: "/examples/node", type };
    const head = headers();
    if (binary) {
      for (const [name, value] of Object.entries(attributes)) head.set(`ce-${name}`, value);
      head.set("content-type", "application/json");
    } else {
      head.set("content-type", "application/cloudevents+json");
    }
    const answered = this.answer(id);
    const body = json.encode(binary ? data : { ...attributes, data });
    const subject = `tm.in.${this.source}.${kind}`;
    // Returns once the server has it on disk; it may be said again with the same id.
    await this.connection.jetstream().publish(subject, body, { headers: head });
    return answered;
  }

  answer(id) {
    return new Promise((resolved, rejected) => {
      const late = setTimeout(
        () => rejected(new Error(`no answer to ${id} within ${ANSWER_MS} ms`)),
        ANSWER_MS,
      );
      this.waiting.set(id, (answer) => {
        clearTimeout(late);
        this.waiting.delete(id);
        resolved(answer);
      });
    });
  }
}

function accepted(answer) {
  if (answer.outcome === "accepted") return answer;
  const faults = (answer.faults ?? []).map((f) => `${f.field}: ${f.message}`);
  throw new Error(`${answer.outcome}: ${[answer.reason, ...faults].join("; ")}`);
}

const pause = (ms) => new Promise((go) => setTimeout(go, ms));

// A rank can have reached something only once the job has been placed.
async function reported(publisher, metric) {
  for (let tries = 0; tries < 100; tries += 1) {
    const answer = await publisher.say("metric_reported", metric, { binary: false });
    const early = answer.faults?.length === 1 && answer.faults[0].field === "job";
    if (!early) return accepted(answer);
    await pause(100);
  }
  throw new Error("the job was not placed in time");
}

async function main([credentials, jobFile]) {
  if (!jobFile) throw new Error("usage: node publish.mjs CREDENTIALS JOB_FILE");
  const publisher = await Publisher.open(credentials);
  try {
    const id = randomUUID();
    const wanted = {
      file: await readFile(jobFile, "utf8"),
      directory: dirname(resolve(jobFile)), // where its relative paths begin
    };
    const { team, job } = accepted(await publisher.say("job_requested", wanted, { id }));
    // Nobody need know whether the first one got through: this is the same job.
    const again = accepted(await publisher.say("job_requested", wanted, { id }));
    if (again.job !== job) throw new Error(`${again.job} is not ${job}`);
    const values = { loss: 0.25, "eval/accuracy": 0.9 };
    await reported(publisher, { team, job, rank: 0, step: 10, values });
    const reason = "the example is over";
    accepted(await publisher.say("cancel_requested", { team, job, reason }));
  } finally {
    await publisher.connection.drain();
  }
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
