# The commands of this project. `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help setup demo dev test test-all e2e bench

NODE_AT_LEAST := 20

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: node_modules/.package-lock.json ## Install what package-lock.json names, and build the dashboard and the OpenAPI documents, where that is not done yet
	@node_modules/.bin/node scripts/build-dashboard.ts --if-stale
	@node_modules/.bin/node scripts/generate.ts --ignored

demo: setup ## Walk through the main job with real requests, and end
	@npm run -s demo

dev: setup ## Start the same, stay up, and print what to try
	@npm run -s dev -- $(ARGS)

test: setup ## Check the types, lint, and run the quick tests, in about six minutes
	@node_modules/.bin/node scripts/checks.ts

test-all: setup ## The same with all tests: whole systems, faults, a browser, gateways, both databases
	@node_modules/.bin/node scripts/checks.ts --all $(ARGS)

e2e: setup ## Install the chart in a whole cluster, and try it: test/cluster/README.md
	@npm run -s e2e

bench: setup ## Measure what we promise, as ratios in one run
	@npm run -s bench

# npm writes this file last, so an installation that was broken off is made again. It takes a current Node from npm
# (node_modules/.bin/node) for everything else; the machine's own only has to be able to run npm.
node_modules/.package-lock.json: package-lock.json
	@command -v node >/dev/null || { echo "Node is missing: install Node $(NODE_AT_LEAST) or newer" >&2; exit 1; }
	@command -v npm >/dev/null || { echo "npm is missing: install npm 11, which comes with Node" >&2; exit 1; }
	@node -e 'process.exit(parseInt(process.versions.node) < $(NODE_AT_LEAST) ? 1 : 0)' || \
	  { echo "Node $$(node --version) is too old: install Node $(NODE_AT_LEAST) or newer" >&2; exit 1; }
	@echo "installing what package-lock.json names into node_modules; this takes about a minute" >&2
	npm ci --loglevel=error
	@touch $@
