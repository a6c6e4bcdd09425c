# The program and the shared libraries it needs; built from the list of packages that scripts/setup owns.
FROM debian:trixie-slim AS builder
COPY scripts/setup /src/scripts/setup
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      $(/src/scripts/setup --list build) \
 && rm -rf /var/lib/apt/lists/*
COPY CMakeLists.txt /src/
COPY common /src/common
COPY config /src/config
COPY sql /src/sql
COPY worker /src/worker
RUN cmake -S /src -B /build -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DLEDGERLOCK_WERROR=ON \
 && cmake --build /build --parallel "$(nproc)" \
 && strip /build/ledgerlock

FROM debian:trixie-slim
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      libconfig11 libhiredis1.1.0 libjansson4 libpq5 \
 && apt-get clean && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin ledgerlock
COPY --from=builder /build/ledgerlock /usr/local/bin/ledgerlock
USER ledgerlock
ENTRYPOINT ["ledgerlock"]
CMD ["help"]
