"""The Job of a run, whole, beside what is expected; and what must hold for every Job."""

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
import yaml
from kubernetes.client import ApiClient, V1Job

from geogenius.domain.errors import InvalidRequest
from geogenius.domain.run import Deadlines, RequestRef
from geogenius.kube.artifact_files import ClaimFiles, ConfigMapFiles, FileItem
from geogenius.kube.job_manifest import (
    ExecuteFlags,
    JobTemplate,
    PodOptions,
    PodSecurity,
    Resources,
    SecretKey,
    build_job,
    request_label,
    spec_hash,
)
from geogenius.kube.resources import SPEC_HASH_ANNOTATION, JsonObject, text_at, value_at
from tests.support.builders import RUN_ID, a_run

GOLDEN = Path(__file__).parent / "golden"

TEMPLATE = JobTemplate("registry.example/geogenius:1.2.3", SecretKey("catalog", "url"))
FLAGS = ExecuteFlags(publish=False, stale_after_seconds=900)
COUNTRIES = ConfigMapFiles("world-files", (FileItem("countries.json", "countries.geojson"),))


@pytest.mark.parametrize(
    ("golden", "job"),
    [
        pytest.param("plain.yaml", build_job(a_run(), FLAGS, TEMPLATE, PodOptions()), id="plain"),
        pytest.param(
            "full.yaml",
            build_job(
                a_run(attempt=3, deadlines=Deadlines(active=timedelta(hours=2))),
                ExecuteFlags(publish=True, stale_after_seconds=120),
                replace(
                    TEMPLATE,
                    env={"GEOGENIUS_TELEMETRY__FORMAT": "json", "GEOGENIUS_DATABASE__URL": "never this one"},
                    resources=Resources({"cpu": "250m", "memory": "300Mi"}, {"memory": "300Mi"}),
                    service_account="importer",
                    image_pull_secrets=("registry",),
                    scratch_size_limit="2Gi",
                    security=PodSecurity(run_as_user=1001, fs_group=1001),
                ),
                PodOptions(
                    Resources(limits={"memory": "1Gi"}),
                    (COUNTRIES, ClaimFiles("archive", (FileItem("2030/states.zip", "states.zip"),))),
                    ttl=timedelta(hours=1),
                ),
            ),
            id="full",
        ),
        pytest.param(
            "config_map.yaml", build_job(a_run(), FLAGS, TEMPLATE, PodOptions(files=(COUNTRIES,))), id="config map"
        ),
        pytest.param(
            "claim.yaml",
            build_job(a_run(), FLAGS, TEMPLATE, PodOptions(files=(ClaimFiles("archive"),))),
            id="whole claim",
        ),
    ],
)
def test_the_job_is_the_expected_one(golden: str, job: JsonObject) -> None:
    assert job == yaml.safe_load((GOLDEN / golden).read_text())


@pytest.mark.parametrize("golden", sorted(path.name for path in GOLDEN.iterdir()))
def test_every_field_is_one_that_kubernetes_knows(golden: str) -> None:
    job = yaml.safe_load((GOLDEN / golden).read_text())

    model = V1Job.from_dict(job)

    assert ApiClient().sanitize_for_serialization(model) == job  # type: ignore[no-untyped-call]  # untyped there


def test_the_same_run_gives_the_same_hash_and_any_change_another() -> None:
    job = build_job(a_run(), FLAGS, TEMPLATE, PodOptions())
    others = [
        build_job(a_run(), ExecuteFlags(publish=True, stale_after_seconds=900), TEMPLATE, PodOptions()),
        build_job(a_run(), FLAGS, replace(TEMPLATE, image="registry.example/geogenius:1.2.4"), PodOptions()),
        build_job(a_run(attempt=2), FLAGS, TEMPLATE, PodOptions()),
    ]

    assert hash_in(job) == hash_in(build_job(a_run(), FLAGS, TEMPLATE, PodOptions())) == spec_hash(job)
    assert len({hash_in(job), *map(hash_in, others)}) == 4


def test_the_arguments_hold_the_run_id_and_no_secret() -> None:
    job = build_job(a_run(), ExecuteFlags(publish=True, stale_after_seconds=900), TEMPLATE, PodOptions())

    assert container(job)["args"] == ["execute", str(RUN_ID), "--publish", "--stale-after-seconds", "900"]


def test_an_owner_in_another_namespace_is_left_out_because_it_would_count_as_gone() -> None:
    elsewhere = RequestRef("other", "world", UUID(int=7))

    job = build_job(a_run(request=elsewhere), FLAGS, TEMPLATE, PodOptions())

    assert value_at(job, "metadata", "ownerReferences") is None


def test_a_run_without_a_request_has_no_owner() -> None:
    job = build_job(a_run(request=None), FLAGS, TEMPLATE, PodOptions())

    assert value_at(job, "metadata", "ownerReferences") is None
    assert text_at(job, "metadata", "labels", "geogenius.io/request") == ""


def test_a_run_without_a_workload_cannot_become_a_job() -> None:
    with pytest.raises(InvalidRequest, match="workload"):
        build_job(a_run(workload=None), FLAGS, TEMPLATE, PodOptions())


@pytest.mark.parametrize("name", ["world", "a" * 63, "a" * 64, "a" * 253, "x." * 126 + "x", "a" * 45 + "-" * 30 + "b"])
def test_every_name_of_a_request_becomes_a_valid_label(name: str) -> None:
    label = request_label(name)

    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", label)
    assert (label == name) == (len(name) <= 63)


def test_long_names_with_the_same_beginning_have_different_labels() -> None:
    assert request_label("a" * 100) != request_label("a" * 101)


def hash_in(job: JsonObject) -> str:
    return text_at(job, "metadata", "annotations", SPEC_HASH_ANNOTATION)


def container(job: JsonObject) -> JsonObject:
    containers = value_at(job, "spec", "template", "spec", "containers")
    assert isinstance(containers, list)
    assert isinstance(containers[0], dict)
    return containers[0]
