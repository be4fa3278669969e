//! What is measured. Each returns its figures and what must stay alive until the memory was read.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::runtime::controller::{self, Action};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{Controller, WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::kinds::{Widget, WidgetStatus};
use crate::{Failure, Options};

type Held = Box<dyn Any + Send>;

pub async fn run(client: Client, options: &Options) -> Result<(Value, Held), Failure> {
    match options.workload.as_str() {
        "synced" => synced::<Widget>(client).await,
        "pods" => synced::<Pod>(client).await,
        "metadata" => synced::<PartialObjectMeta<Widget>>(client).await,
        "idle" => idle(client, options).await,
        "reads" => reads(client).await,
        "reconciled" => reconciled(client, options).await,
        "latency" => latency(client, options).await,
        "children" => children(client, options).await,
        "load" => load(client, options).await,
        "applied" => applied(client, options).await,
        other => Err(format!("this peer has no workload {other}").into()),
    }
}

async fn cached<K>(client: Client) -> Result<Store<K>, Failure>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    let (reader, writer) = reflector::store();
    let events = watcher(Api::<K>::all(client), watcher::Config::default()).default_backoff();
    let mut events = Box::pin(events.reflect(writer));
    tokio::spawn(async move { while events.next().await.is_some() {} });
    reader.wait_until_ready().await?;
    Ok(reader)
}

async fn synced<K>(client: Client) -> Result<(Value, Held), Failure>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let store = cached::<K>(client).await?;
    Ok((json!({ "objects": store.len() }), Box::new(store)))
}

async fn reads(client: Client) -> Result<(Value, Held), Failure> {
    let store = cached::<Widget>(client).await?;
    let keys: Vec<ObjectRef<Widget>> = store
        .state()
        .iter()
        .map(|found| ObjectRef::from(&**found))
        .collect();
    let started = Instant::now();
    let mut rounds = 0_u32;
    let mut size = 0_i64;
    while started.elapsed() < Duration::from_secs(1) {
        for key in &keys {
            size += i64::from(store.get(key).map_or(0, |found| found.spec.size));
        }
        rounds += 1;
    }
    let gets = f64::from(rounds) * keys.len() as f64 / started.elapsed().as_secs_f64();
    let tenth = lists(&store, 20, |found| {
        found.labels().get("tier").is_some_and(|tier| tier == "t3")
    });
    let everything = lists(&store, 5, |_| true);
    let figures = json!({ "objects": keys.len(), "gets": gets, "list_ms": tenth, "list_typed_ms": tenth,
        "list_all_ms": everything, "sum": size });
    Ok((figures, Box::new(store)))
}

/// The milliseconds of a list of which a field of each object is read: the median of so many rounds.
fn lists(store: &Store<Widget>, rounds: usize, wanted: impl Fn(&Widget) -> bool) -> f64 {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        let found: Vec<_> = store
            .state()
            .into_iter()
            .filter(|found| wanted(found))
            .collect();
        let sum: i64 = found.iter().map(|found| i64::from(found.spec.size)).sum();
        assert!(sum >= 0);
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// What the reconcilers of one workload share.
struct Shared {
    client: Client,
    wanted: usize,
    state: Mutex<State>,
    done: Notify,
}

#[derive(Default)]
struct State {
    finished: usize,
    begins: BTreeMap<String, u64>,
}

impl Shared {
    fn new(client: Client, wanted: usize) -> Arc<Self> {
        Arc::new(Self {
            client,
            wanted,
            state: Mutex::default(),
            done: Notify::new(),
        })
    }

    fn finished(&self) {
        let mut state = self.state.lock().expect("no panic holds it");
        state.finished += 1;
        if state.finished == self.wanted {
            self.done.notify_one();
        }
    }
}

/// Controls the kind alone, or with what it owns.
fn start<F, Fut>(shared: &Arc<Shared>, concurrency: u16, owns: bool, reconcile: F) -> Store<Widget>
where
    F: FnMut(Arc<Widget>, Arc<Shared>) -> Fut + Send + 'static,
    Fut: Future<Output = Result<Action, kube::Error>> + Send + 'static,
{
    let everything = watcher::Config::default;
    let mut controller = Controller::new(Api::<Widget>::all(shared.client.clone()), everything())
        .with_config(controller::Config::default().concurrency(concurrency));
    if owns {
        controller = controller
            .owns(Api::<ConfigMap>::all(shared.client.clone()), everything())
            .owns(Api::<Deployment>::all(shared.client.clone()), everything());
    }
    let store = controller.store();
    let retry = |_: Arc<Widget>, error: &kube::Error, _: Arc<Shared>| {
        eprintln!("{error}");
        Action::requeue(Duration::from_secs(1))
    };
    tokio::spawn(
        controller
            .run(reconcile, retry, shared.clone())
            .for_each(|_| std::future::ready(())),
    );
    store
}

async fn reconciled(client: Client, options: &Options) -> Result<(Value, Held), Failure> {
    counted(client, options, false).await
}

async fn idle(client: Client, options: &Options) -> Result<(Value, Held), Failure> {
    counted(client, options, true).await
}

async fn counted(client: Client, options: &Options, owns: bool) -> Result<(Value, Held), Failure> {
    let shared = Shared::new(client, options.objects);
    let store = start(
        &shared,
        options.concurrency,
        owns,
        async |widget: Arc<Widget>, shared: Arc<Shared>| {
            assert!(widget.spec.size >= 0);
            shared.finished();
            Ok(Action::await_change())
        },
    );
    if options.objects > 0 {
        shared.done.notified().await;
    }
    Ok((json!({ "objects": store.len() }), Box::new(store)))
}

async fn latency(client: Client, options: &Options) -> Result<(Value, Held), Failure> {
    updated(client, options, |widget| widget.name_any()).await
}

/// An update is known by the size it wrote.
async fn load(client: Client, options: &Options) -> Result<(Value, Held), Failure> {
    updated(client, options, |widget| widget.spec.size.to_string()).await
}

/// When the reconcile of each update began.
async fn updated(
    client: Client,
    options: &Options,
    name: fn(&Widget) -> String,
) -> Result<(Value, Held), Failure> {
    let shared = Shared::new(client, options.objects);
    let store = start(
        &shared,
        options.concurrency,
        false,
        move |widget: Arc<Widget>, shared: Arc<Shared>| async move {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .expect("after 1970")
                .as_nanos();
            shared
                .state
                .lock()
                .expect("no panic holds it")
                .begins
                .entry(name(&widget))
                .or_insert(now as u64);
            shared.finished();
            Ok(Action::await_change())
        },
    );
    shared.done.notified().await;
    *shared.state.lock().expect("no panic holds it") = State::default();
    println!("synced");
    loop {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let state = shared.state.lock().expect("no panic holds it");
        if state.begins.len() >= options.updates {
            return Ok((json!({ "begins": state.begins }), Box::new(store)));
        }
    }
}

async fn children(client: Client, options: &Options) -> Result<(Value, Held), Failure> {
    let shared = Shared::new(client, options.objects);
    let store = start(
        &shared,
        options.concurrency,
        false,
        async |widget: Arc<Widget>, shared: Arc<Shared>| create_child(&widget, &shared).await,
    );
    shared.done.notified().await;
    Ok((json!({ "objects": store.len() }), Box::new(store)))
}

async fn create_child(widget: &Widget, shared: &Shared) -> Result<Action, kube::Error> {
    if widget
        .status
        .as_ref()
        .is_some_and(|status| !status.nodes.is_empty())
    {
        return Ok(Action::await_change());
    }
    Api::<ConfigMap>::namespaced(
        shared.client.clone(),
        &widget.namespace().unwrap_or_default(),
    )
    .create(&PostParams::default(), &child_of(widget))
    .await?;
    write_status(widget, shared).await?;
    shared.finished();
    Ok(Action::await_change())
}

fn child_of(widget: &Widget) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(format!("{}-child", widget.name_any())),
            namespace: widget.namespace(),
            owner_references: widget.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(
            "size".to_owned(),
            widget.spec.size.to_string(),
        )])),
        ..ConfigMap::default()
    }
}

async fn write_status(widget: &Widget, shared: &Shared) -> Result<(), kube::Error> {
    let mut changed = widget.clone();
    changed.status = Some(WidgetStatus {
        nodes: vec!["one".to_owned()],
    });
    Api::<Widget>::namespaced(
        shared.client.clone(),
        &widget.namespace().unwrap_or_default(),
    )
    .replace_status(&widget.name_any(), &PostParams::default(), &changed)
    .await?;
    Ok(())
}

async fn applied(client: Client, options: &Options) -> Result<(Value, Held), Failure> {
    let shared = Shared::new(client, options.objects);
    let store = start(
        &shared,
        options.concurrency,
        false,
        async |widget: Arc<Widget>, shared: Arc<Shared>| apply_child(&widget, &shared).await,
    );
    shared.done.notified().await;
    Ok((json!({ "objects": store.len() }), Box::new(store)))
}

async fn apply_child(widget: &Widget, shared: &Shared) -> Result<Action, kube::Error> {
    let namespace = widget.namespace().unwrap_or_default();
    let name = format!("{}-child", widget.name_any());
    let child = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(
            "size".to_owned(),
            widget.spec.size.to_string(),
        )])),
        ..ConfigMap::default()
    };
    Api::<ConfigMap>::namespaced(shared.client.clone(), &namespace)
        .patch(
            &name,
            &PatchParams::apply("bench").force(),
            &Patch::Apply(&child),
        )
        .await?;
    shared.finished();
    Ok(Action::await_change())
}
