//! Submits a job, reports a metric, cancels, and prints what it is answered.
//!
//!     rustc --edition 2021 publish.rs && ./publish CREDENTIALS JOB_FILE
//!
//! It does what ../node/publish.mjs does, with the standard library alone: the bus speaks
//! text, so a language needs no client of it. For a service take the crate `async-nats`,
//! which reconnects; the subjects, headers and bodies stay these.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, fs, process, thread};

const ANSWER_SECONDS: u64 = 20;

struct Publisher {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
    source: String,
    inbox: String,
    said: u32,
}

impl Publisher {
    /// Connect with the file that `tm sources add NAME` names, and listen for answers.
    fn open(credentials: &str) -> Result<Self> {
        let told = fs::read_to_string(credentials)?;
        let [url, user, password] = ["url", "user", "password"].map(|name| field(&told, name));
        let writer = TcpStream::connect(url.trim_start_matches("nats://"))?;
        writer.set_read_timeout(Some(Duration::from_secs(ANSWER_SECONDS)))?;
        let mut made = Self {
            reader: BufReader::new(writer.try_clone()?),
            writer,
            source: field(&told, "source"),
            inbox: format!("{}.answers", field(&told, "inbox_prefix")),
            said: 0,
        };
        made.line()?; // what the server says of itself
        let Self { source, inbox, .. } = &made;
        let hello = format!(
            "CONNECT {{\"verbose\":false,\"headers\":true,\"user\":{},\"pass\":{}}}\r\n\
             SUB tm.in_reply.{source}.> 1\r\nSUB {inbox} 2\r\n",
            quoted(&user),
            quoted(&password),
        );
        made.writer.write_all(hello.as_bytes())?;
        Ok(made)
    }

    /// Say something and wait for its answer. An id makes it safe to say it again.
    fn say(&mut self, kind: &str, message: &str, body: &str) -> Result<String> {
        self.said += 1;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_err(Error::other)?;
        let id = format!("rust-{}-{}-{}", now.as_nanos(), process::id(), self.said);
        let headers = format!(
            "NATS/1.0\r\nce-specversion: 1.0\r\nce-id: {id}\r\nce-source: /examples/rust\r\n\
             ce-type: trainmaster.events.v1.{message}\r\ncontent-type: application/json\r\n\r\n"
        );
        let Self { source, inbox, .. } = &self;
        let (head, total) = (headers.len(), headers.len() + body.len());
        let publish = format!("HPUB tm.in.{source}.{kind} {inbox} {head} {total}\r\n");
        self.writer
            .write_all((publish + &headers + body + "\r\n").as_bytes())?;
        let answers = format!("tm.in_reply.{}.{id}", self.source);
        loop {
            let (subject, text) = self.message()?;
            if subject == self.inbox && text.contains("\"error\"") {
                return Err(Error::other(format!("not stored: {text}")));
            }
            if subject == answers {
                println!("{text}");
                return Ok(text);
            }
        }
    }

    /// Wait for the next message: its subject and its body.
    fn message(&mut self) -> Result<(String, String)> {
        loop {
            let line = self.line()?;
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["PING"] => self.writer.write_all(b"PONG\r\n")?,
                ["MSG", subject, .., size] => {
                    return Ok((subject.to_string(), self.body(0, number(size)?)?));
                }
                ["HMSG", subject, .., head, total] => {
                    return Ok((
                        subject.to_string(),
                        self.body(number(head)?, number(total)?)?,
                    ));
                }
                ["-ERR", ..] => return Err(Error::new(ErrorKind::PermissionDenied, line)),
                _ => {}
            }
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line)? {
            0 => Err(Error::new(ErrorKind::UnexpectedEof, "the server went away")),
            _ => Ok(line),
        }
    }

    fn body(&mut self, head: usize, total: usize) -> Result<String> {
        let mut bytes = vec![0; total + 2]; // a line break follows
        self.reader.read_exact(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes[head..total]).into_owned())
    }
}

fn number(word: &str) -> Result<usize> {
    word.parse().map_err(Error::other)
}

/// Write a JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out += &format!("\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out + "\""
}

/// Take a plain string out of a flat JSON object; "" when it is not there.
fn field(json: &str, name: &str) -> String {
    let rest = json
        .split_once(&format!("\"{name}\""))
        .map_or("", |(_, rest)| rest);
    let value = rest
        .trim_start_matches([':', ' '])
        .strip_prefix('"')
        .unwrap_or("");
    value.split('"').next().unwrap_or("").to_string()
}

fn accepted(answer: String) -> Result<String> {
    match field(&answer, "outcome").as_str() {
        "accepted" => Ok(answer),
        _ => Err(Error::other(answer)),
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [credentials, file] = arguments.as_slice() else {
        return Err(Error::other("usage: publish CREDENTIALS JOB_FILE"));
    };
    let mut publisher = Publisher::open(credentials)?;
    let path = Path::new(file).canonicalize()?;
    let directory = path.parent().unwrap_or(Path::new("/")).to_string_lossy();
    let (text, directory) = (quoted(&fs::read_to_string(&path)?), quoted(&directory));
    let wanted = format!("{{\"file\":{text},\"directory\":{directory}}}");
    let submitted = accepted(publisher.say("job_requested", "JobRequested", &wanted)?)?;
    let job = quoted(&field(&submitted, "job"));

    let metric = format!("{{\"job\":{job},\"step\":10,\"values\":{{\"loss\":0.25}}}}");
    let mut answer = publisher.say("metric_reported", "MetricReported", &metric)?;
    while answer.contains("\"field\":\"job\"") {
        thread::sleep(Duration::from_millis(100)); // it has not been placed yet
        answer = publisher.say("metric_reported", "MetricReported", &metric)?;
    }
    accepted(answer)?;

    let end = format!("{{\"job\":{job},\"reason\":\"the example is over\"}}");
    accepted(publisher.say("cancel_requested", "JobCancelRequested", &end)?)?;
    Ok(())
}
