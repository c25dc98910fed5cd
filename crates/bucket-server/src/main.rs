//! Runs the server until Ctrl-C: `bucket-server --port 9000 --delay 30ms`. Prints its address.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command")]

use std::io::{Read, Write};
use std::process::ExitCode;

use tidetable_bucket_server::{Clock, Options, Server, duration};

const USAGE: &str = "\
Runs an S3 and GCS server in memory, on loopback, and prints its address.

usage: bucket-server [OPTIONS]

  --port N           port; by default any that is free
  --bucket NAME      a bucket that exists from the start, may be given more than once; by default tidetable
  --delay TIME       time added to each reply, such as 30ms
  --faults LIST      faults and their rates: 503=0.05,lost-reply=0.01; of all, reset, 500, 503, 409, 412, error-after,
                     lost-reply, truncated, slow, stale-upload
  --slow TIME        time added to a slow reply; by default 300ms
  --seed N           seed of the faults; by default 1
  --page N           most entries of a list reply; by default 1000
  --part BYTES       least size of a part that is not the last; by default 5 MiB
  --clock SECONDS    how far its clock is ahead, or behind if negative
  --authorization    refuse requests without Authorization
  --log              keep what is received, to be searched
  --with-stdin       end when standard input ends

GET /_/counts, PUT /_/faults, PUT /_/delay and GET /_/received?find=TEXT read and change it while it runs.";

fn parse(mut args: impl Iterator<Item = String>) -> Option<(Options, bool)> {
    let mut options = Options::default();
    let (mut buckets, mut with_stdin) = (Vec::new(), false);

    while let Some(name) = args.next() {
        match name.as_str() {
            "--authorization" => options.authorization = true,
            "--log" => options.log = true,
            "--with-stdin" => with_stdin = true,
            _ => {
                let value = args.next()?;
                match name.as_str() {
                    "--port" => options.port = value.parse().ok()?,
                    "--bucket" => buckets.push(value),
                    "--delay" => options.delay = duration(&value)?,
                    "--slow" => options.slow = duration(&value)?,
                    "--faults" => options.faults = value.parse().ok()?,
                    "--seed" => options.seed = value.parse().ok()?,
                    "--page" => options.page = value.parse().ok().filter(|page| (1..=1000).contains(page))?,
                    "--part" => options.part = value.parse().ok()?,
                    "--clock" => options.clock = Clock::Wall(value.parse().ok()?),
                    _ => return None,
                }
            }
        }
    }
    if !buckets.is_empty() {
        options.buckets = buckets;
    }
    Some((options, with_stdin))
}

fn main() -> ExitCode {
    if std::env::args().skip(1).any(|arg| arg == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let Some((options, with_stdin)) = parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };

    let port = options.port;
    let server = match Server::start(options) {
        Ok(server) => server,
        Err(error) => {
            eprintln!("port {port}: {error}; without --port, any that is free is taken");
            return ExitCode::FAILURE;
        }
    };

    println!("{}", server.endpoint());
    // A closed pipe has no reader to serve.
    if std::io::stdout().flush().is_err() {
        return ExitCode::FAILURE;
    }
    if with_stdin {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        return ExitCode::SUCCESS;
    }
    loop {
        std::thread::park();
    }
}
