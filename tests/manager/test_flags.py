"""The command line of an operator."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest

import ctrlruntime as ctrl
from ctrlruntime import log
from ctrlruntime.errors import ConfigError
from ctrlruntime.fleet import KubeconfigFiles, Static

pytestmark = pytest.mark.usefixtures("sets_up_log")


def flags(*argv, **options):
    return ctrl.parse_flags(list(argv), **{"environ": {}, **options})


def test_defaults():
    parsed = flags()

    assert parsed.metrics_bind_address == ""
    assert parsed.health_probe_bind_address == ""
    assert parsed.leader_elect is False
    assert (parsed.kubeconfig, parsed.context) == (None, None)
    assert parsed.log == log.Options()


def test_flags_reach_the_manager():
    parsed = flags("--metrics-bind-address", "0", "--leader-elect", "--leader-election-namespace", "ops")

    election = parsed.election(ctrl.LeaderElection("mine"))

    assert election is not None
    assert election.namespace == "ops"
    assert flags().election(ctrl.LeaderElection("mine")) is None
    assert flags("--leader-elect").election(None) is None


def test_sharding_flags_reach_the_manager():
    parsed = flags("--shard-weight", "3", "--leader-election-namespace", "ops")

    assert parsed.shared(ctrl.Sharding("mine")) == ctrl.Sharding("mine", weight=3, namespace="ops")
    assert flags().shared(ctrl.Sharding("mine", weight=2)) == ctrl.Sharding("mine", weight=2)
    assert parsed.shared(None) is None


def test_clusters_are_added_to_those_of_the_program():
    config = ctrl.Config(host="https://no-cluster.invalid")
    mine, options = Static({"eu": config}), {"scheme": ctrl.Scheme(), "cache": ctrl.CacheOptions(namespaces=["a"])}
    fleet = ctrl.Fleet(mine, **options)

    added = flags("--clusters", "/fleet").fleet(fleet)

    assert [provider.name for provider in added.providers] == ["static", "files"]
    assert {name: getattr(added, name) for name in options} == options
    assert fleet.providers == (mine,)
    assert [each.name for each in flags("--clusters=/fleet").fleet(None).providers] == ["files"]
    assert flags().fleet(fleet) is fleet
    assert flags().fleet(None) is None


def test_clusters_of_a_flag_and_of_the_program_need_different_names():
    parsed, config = flags("--clusters", "/fleet"), ctrl.Config(host="https://no-cluster.invalid")

    with pytest.raises(ConfigError, match="two providers named 'files'"):
        ctrl.new_manager(config, flags=parsed, fleet=ctrl.Fleet(KubeconfigFiles("/mine")))
    ctrl.new_manager(config, flags=parsed, fleet=ctrl.Fleet(KubeconfigFiles("/mine", name="mine")))


@pytest.mark.parametrize("weight", ["0", "-1", "half"])
def test_a_weight_that_does_not_exist_is_wrong_usage(weight, capsys):
    with pytest.raises(SystemExit) as ended:
        flags(f"--shard-weight={weight}")

    assert ended.value.code == 2
    assert f"'{weight}' is not a weight: give a number from 1" in capsys.readouterr().err


def test_webhook_flags_name_the_certificate():
    parsed = flags("--webhook-cert-path", "/certs", "--webhook-cert-name", "a.crt", "--webhook-cert-key", "a.key")

    assert parsed.webhook(None) == ctrl.webhook.WebhookOptions(cert_dir="/certs", cert_name="a.crt", key_name="a.key")


def test_a_certificate_of_the_command_line_replaces_the_one_the_program_would_make():
    made = ctrl.webhook.WebhookOptions(port=0, development=ctrl.webhook.DevelopmentMode())

    assert flags("--webhook-cert-path", "/certs").webhook(made) == ctrl.webhook.WebhookOptions(
        port=0, cert_dir="/certs"
    )
    assert flags("--webhook-port", "9444").webhook(made) == replace(made, port=9444)
    assert flags().webhook(made) is made
    assert flags().webhook(None) is None


@pytest.mark.parametrize("port", ["70000", "-1", "http"])
def test_a_webhook_port_there_is_none_of_is_wrong_usage(port, capsys):
    with pytest.raises(SystemExit) as caught:
        flags(f"--webhook-port={port}")

    assert caught.value.code == 2
    assert "give a number from 0 (a free one) to 65535" in capsys.readouterr().err


def test_webhook_flags_reach_the_manager():
    parsed = flags("--webhook-cert-path", "/certs", "--webhook-port", "9444", "--metrics-bind-address", "0")

    mgr = ctrl.new_manager(ctrl.Config(host="https://no-cluster.invalid"), flags=parsed)

    assert mgr.webhook_server.options == ctrl.webhook.WebhookOptions(port=9444, cert_dir="/certs")


def test_metrics_are_served_as_the_program_says_unless_a_flag_says_otherwise():
    mine = ctrl.metrics.SecureMetrics(cert_dir="/mine")

    assert flags().secure_metrics(None) is None
    assert flags().secure_metrics(mine) is mine
    assert flags("--metrics-secure").secure_metrics(None) == ctrl.metrics.SecureMetrics()
    assert flags("--metrics-secure").secure_metrics(mine) is mine
    assert flags("--no-metrics-secure").secure_metrics(mine) is None


@pytest.mark.parametrize("mine", [None, ctrl.metrics.SecureMetrics(cert_dir="/mine")])
def test_metrics_flags_name_the_certificate(mine):
    parsed = flags(
        "--metrics-secure",
        *("--metrics-cert-path", "/certs", "--metrics-cert-name", "a.crt", "--metrics-cert-key", "a.key"),
    )

    found = parsed.secure_metrics(mine)

    assert found == ctrl.metrics.SecureMetrics(cert_dir="/certs", cert_name="a.crt", key_name="a.key")


@pytest.mark.parametrize("more", [(), ("--no-metrics-secure",)])
def test_a_metrics_certificate_that_nothing_would_show_is_refused(more):
    parsed = flags("--metrics-cert-path", "/certs", *more)

    with pytest.raises(ConfigError, match=r"--metrics-cert-path is /certs, but .* Add --metrics-secure"):
        ctrl.new_manager(ctrl.Config(host="https://no-cluster.invalid"), flags=parsed)


def test_a_parser_of_yours_keeps_its_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int)

    parsed = flags("--size", "3", parser=parser)

    assert parsed.args.size == 3


def test_a_program_may_choose_another_default_for_the_log():
    options = log.Options(devel=True)

    assert flags(log_options=options).log == options
    assert flags("--zap-devel=false", log_options=options).log == log.Options()
    assert flags("--zap-encoder", "json", log_options=options).log == log.Options(devel=True, encoder="json")


def test_an_unknown_flag_ends_with_code_2(capsys):
    with pytest.raises(SystemExit) as caught:
        flags("--nonsense")

    assert caught.value.code == 2
    assert "--nonsense" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "namespaces"), [("", None), (" , ", None), ("one", ["one"]), ("one, two", ["one", "two"])]
)
def test_watch_namespace_is_a_comma_list(text, namespaces):
    options = flags(environ={"WATCH_NAMESPACE": text}).cache(None)

    assert (None if options is None else list(options.namespaces)) == namespaces


def test_namespaces_given_in_code_win_over_watch_namespace():
    options = ctrl.CacheOptions(namespaces=["mine"])

    assert flags(environ={"WATCH_NAMESPACE": "other"}).cache(options) is options


def test_watch_namespace_keeps_the_other_cache_options():
    options = ctrl.CacheOptions(sync_timeout=7.0)

    found = flags(environ={"WATCH_NAMESPACE": "other"}).cache(options)

    assert found is not None
    assert (list(found.namespaces), found.sync_timeout) == (["other"], 7.0)


def test_a_kubeconfig_that_is_not_there_ends_the_process_with_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        flags("--kubeconfig", str(tmp_path / "nowhere")).get_config()

    assert caught.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "nowhere" in said
    assert len(said.splitlines()) == 1
