# The image of every command: one static binary and the certificates of public authorities, nothing else.
#
#   docker build --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) --tag gardener-extension-worker .
#
# Cargo.lock pins the crates, rust-toolchain.toml the compiler and the digest the C compiler; no path of the builder gets in. The tag
# is for readers: the digest decides.
ARG RUST_IMAGE=rust:1.95-alpine@sha256:606fd313a0f49743ee2a7bd49a0914bab7deedb12791f3a846a34a4711db7ed2

FROM ${RUST_IMAGE} AS build
ARG SOURCE_DATE_EPOCH=0
# Optional features, such as otlp.
ARG FEATURES=
ENV SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH} CARGO_INCREMENTAL=0 RUSTFLAGS="-C target-feature=+crt-static --remap-path-prefix=/build=."
RUN apk add --no-cache build-base ca-certificates cmake linux-headers
WORKDIR /build
COPY . .
RUN cargo build --release --locked --features "${FEATURES}" --bin gardener-extension-worker

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /build/target/release/gardener-extension-worker /gardener-extension-worker
USER 65532:65532
ENTRYPOINT ["/gardener-extension-worker"]
