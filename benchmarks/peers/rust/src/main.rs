//! The kube-rs peer of the benchmark: `peer WORKLOAD --kubeconfig FILE --objects N [--updates N] [--concurrency N]`.
//!
//! It says `ready`, waits for a line, does the workload, prints one JSON line, gives back what memory it can at the next line and says
//! `settled`, and ends with its input. Time, CPU and memory are measured from outside.

mod kinds;
mod workloads;

use std::collections::HashMap;

use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::io::{AsyncBufReadExt, BufReader};

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

pub struct Options {
    pub workload: String,
    pub objects: usize,
    pub updates: usize,
    pub concurrency: u16,
    kubeconfig: String,
}

fn options() -> Result<Options, Failure> {
    let mut given = std::env::args().skip(1);
    let workload = given.next().ok_or("which workload?")?;
    let mut flags = HashMap::new();
    while let Some(flag) = given.next() {
        let value = given
            .next()
            .ok_or_else(|| format!("{flag} needs a value"))?;
        flags.insert(flag.trim_start_matches('-').to_owned(), value);
    }
    let number =
        |name: &str, default: usize| flags.get(name).map_or(Ok(default), |text| text.parse());
    Ok(Options {
        workload,
        objects: number("objects", 0)?,
        updates: number("updates", 0)?,
        concurrency: u16::try_from(number("concurrency", 1)?)?,
        kubeconfig: flags.get("kubeconfig").cloned().unwrap_or_default(),
    })
}

async fn client(path: &str) -> Result<kube::Client, Failure> {
    let file = Kubeconfig::read_from(path)?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Ok(kube::Client::try_from(config)?)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let options = options()?;
    let client = client(&options.kubeconfig).await?;
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    println!("ready");
    input.next_line().await?;
    let (figures, held) = workloads::run(client, &options).await?;
    println!("{figures}");
    input.next_line().await?;
    // SAFETY: glibc's own function, without conditions.
    unsafe { libc::malloc_trim(0) };
    println!("settled");
    input.next_line().await?;
    drop(held);
    std::process::exit(0); // without waiting for the watches
}
