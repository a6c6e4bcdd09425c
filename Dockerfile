# The program, the shop of the demonstration with its stand-in of a payment gateway, and the shared libraries it needs; built from the list of packages that scripts/setup owns.
FROM debian:trixie-slim AS builder
COPY scripts/setup /src/scripts/setup
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      $(/src/scripts/setup --list build) \
 && rm -rf /var/lib/apt/lists/*
COPY CMakeLists.txt /src/
COPY cmake /src/cmake
COPY common /src/common
COPY config /src/config
COPY sql /src/sql
COPY worker /src/worker
COPY ops /src/ops
COPY labs /src/labs
COPY tests/testkit /src/tests/testkit
RUN cmake -S /src/labs -B /build -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF \
 && cmake --build /build --target ledgerlock ledgerlock-shop ledgerlock_gateway --parallel "$(nproc)" \
 && strip /build/ledgerlock /build/ledgerlock-shop /build/ledgerlock_gateway

FROM debian:trixie-slim
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      libconfig11 libcurl4t64 libhiredis1.1.0 libjansson4 libmicrohttpd12t64 libpq5 \
 && apt-get clean && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin ledgerlock
COPY --from=builder /build/ledgerlock /build/ledgerlock-shop /build/ledgerlock_gateway /usr/local/bin/
USER ledgerlock
ENTRYPOINT ["ledgerlock"]
CMD ["help"]
