# The only door. `make` or `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
NAME ?= geogenius

.PHONY: help setup format lint types layers test test-unit test-contract test-integration test-chart test-e2e demo demo-down \
	matrix bench-launch bench-catalog bench-runners generate verify ci image cluster-build cluster-up cluster-down

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

setup: $(BIN)/.ready ## make .venv with the locked dependencies

$(BIN)/.ready: locks/dev.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes -r locks/dev.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

demo: setup ## start a cluster, install the operator, import a country file, ask a question
	$(BIN)/python -m demo up

demo-down: setup ## remove what the demo made
	$(BIN)/python -m demo down

test: setup test-unit test-contract test-chart test-integration test-e2e ## every tier; sets up all it needs

test-unit: setup ## decisions, translation, house rules: no network, no database
	$(BIN)/pytest tests/unit

test-contract: setup ## one suite over every runner
	$(PYTHON) -m tests.cluster packages
	$(BIN)/pytest tests/contract

test-chart: setup cluster-build ## the rendered chart
	$(BIN)/pytest tests/chart

test-integration: setup ## real PostgreSQL and PostGIS
	$(PYTHON) -m tests.cluster packages
	$(BIN)/pytest tests/integration

test-e2e: setup cluster-build ## a real cluster: API server, kubelet, pods, the chart
	$(BIN)/pytest tests/e2e

bench-launch: setup cluster-build ## from `kubectl apply` to Succeeded, beside a bare Job
	$(BIN)/python -m bench.launch

bench-catalog: setup ## registration, point questions, name search, publication with many releases
	$(PYTHON) -m tests.cluster packages
	$(BIN)/python -m bench.catalog

bench-runners: setup ## what each runner adds; 1,000 queued runs while workers are killed
	$(PYTHON) -m tests.cluster packages
	$(BIN)/python -m bench.runners

matrix: setup ## the long forms of tests; writes docs/evidence
	$(PYTHON) -m tests.cluster packages
	GEOGENIUS_MATRIX=full $(BIN)/pytest tests/integration tests/contract -m matrix

format: setup ## format and sort
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix --select I .

lint: setup ## style
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup ## strict types
	$(BIN)/mypy
	$(BIN)/mypy --explicit-package-bases tests/cluster tests/support demo bench

layers: setup ## imports go one way
	$(BIN)/lint-imports

generate: setup cluster-build ## write what is generated: CRD, schema picture, install.yaml
	$(BIN)/python -m tests.support.generated write

verify: setup cluster-build ## fail where a generated file is not up to date
	$(BIN)/python -m tests.support.generated verify

ci: lint types layers test verify ## all of it; what cannot run fails

image: setup ## build the product's image and print its size
	$(PYTHON) -m tests.cluster image product

cluster-build: ## build the cluster's programs and images; slow once on a machine
	$(PYTHON) -m tests.cluster build

cluster-up: cluster-build ## start the test cluster NAME
	$(PYTHON) -m tests.cluster --name $(NAME) up

cluster-down: ## stop the test cluster NAME and leave nothing behind
	$(PYTHON) -m tests.cluster --name $(NAME) down
