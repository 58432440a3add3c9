# The images of Postern, a target each: operator, api-server, sidecar, cli; and redirect, for policies with `interception: Redirect`.
#
#   docker build --target sidecar -t registry.example/postern-sidecar:0.1.0 .
#
# A base needs Node 22.19 or later on its PATH, or in /nodejs/bin as the distroless ones have it, and nothing else: no shell, no package manager.

ARG BUILDER=node:26
ARG BASE=node:26-slim
ARG REDIRECT_BASE=debian:bookworm-slim

FROM ${BUILDER} AS build
WORKDIR /src
COPY package.json package-lock.json ./
# No script of a library is needed to bundle it.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN node scripts/bundle.ts

FROM ${BASE} AS base
ENV NODE_ENV=production PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/nodejs/bin
WORKDIR /app
# By number, so that Kubernetes can tell that it is not root.
USER 65532:65532
ENTRYPOINT ["node", "/app/main.mjs"]

FROM base AS operator
COPY --from=build /src/dist/operator /app

FROM base AS api-server
COPY --from=build /src/dist/api-server /app

FROM base AS sidecar
COPY --from=build /src/dist/sidecar /app

FROM base AS cli
COPY --from=build /src/dist/cli /app

# Runs once in a pod, before the gate, as root with two capabilities. There is nothing of Postern in it.
FROM ${REDIRECT_BASE} AS redirect
RUN apt-get update \
  && apt-get install --yes --no-install-recommends iptables \
  && rm -rf /var/lib/apt/lists/*
