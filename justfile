# The commands of a person and of CI. `just` alone lists them.

set positional-arguments

# Codecs need AVX2 and BMI to be fast. A machine without them, or without /proc/cpuinfo, gets a baseline build.
export RUSTFLAGS := env("RUSTFLAGS", v3)
v3 := `for f in avx2 bmi1 bmi2 fma f16c abm movbe; do grep -qsw "$f" /proc/cpuinfo || exit 0; done; echo "-C target-cpu=x86-64-v3"`

# Where cargo builds; an empty CARGO_TARGET_DIR counts as none.
target := if env("CARGO_TARGET_DIR", "") == "" { justfile_directory() / "target" } else { env("CARGO_TARGET_DIR") }
export CARGO_TARGET_DIR := target

# `just run` and `just test` share one build. For data of your own, `just install` makes the fast one.
tidetable := target / "debug/tidetable"
release := target / "release/tidetable"
packages := target / "packages"

# Python with what the tests and `fetch-data` import; the tests find it by this name.
venv := target / "venv"
export TIDETABLE_PYTHON := venv / "bin/python"

# The engines that `bench` compares with, apart from what tests need.
peers := target / "bench-venv"

# DuckDB with its extensions httpfs, delta and iceberg, whose wheels are of another version.
httpfs := target / "httpfs-venv"
export TIDETABLE_HTTPFS_PYTHON := httpfs / "bin/python"

# Microsoft's emulator of Azure Blob Storage, where npm is.
azurite := target / "azurite"
export TIDETABLE_AZURITE := azurite / "node_modules/.bin/azurite-blob"

# What is shipped but not in the build of `just run` and `just test`, and the crates behind it.
features := "bigtable,cluster,postgres"
without := "--exclude tidetable-bigtable --exclude tidetable-cluster --exclude tidetable-postgres"

# List the recipes.
default:
    @"{{ just_executable() }}" --list

# Run a job of jobs/: `just run smart-meters --from 2018-01-02`.
run JOB *ARGS: _build
    @exec "{{ tidetable }}" run "$@"

# Run every job, each after those that it depends on.
run-all *ARGS: _build
    @exec "{{ tidetable }}" run --all "$@"

# Ask SQL of the tables: `just sql -c 'SELECT COUNT(*) FROM SENSOR'`.
sql *ARGS: _build
    @exec "{{ tidetable }}" sql "$@"

# Any other command: `just tidetable --help`.
tidetable *ARGS: _build
    @exec "{{ tidetable }}" "$@"

# Install the optimised command, for data of your own and for cron.
install:
    cargo install --path crates/cli --locked

# Cargo 1.95 does not apply `strip` of the profile to a package with an override.
# Build what is shipped, once, and make a wheel and a Debian package of it, in target/packages.
package:
    cargo rustc --profile dist --package tidetable-cli --bin tidetable --features {{ features }} --locked -- -C link-arg=-Wl,--icf=all -C strip=symbols
    rm -rf "{{ packages }}"
    python3 -B packaging/package.py "{{ target }}/dist/tidetable" "{{ packages }}"

# Install both packages into places of their own and run the sample: those of WHAT, a folder, or made of it, a binary.
package-test WHAT=packages:
    python3 -B packaging/test.py "$1"

# Run the tests of the build that `just run` shares, and say what that leaves out.
test: _test
    @echo "left out by just test:" >&2
    @echo "  just test-features   crates bigtable, cluster and postgres, and their end-to-end tests" >&2
    @echo "  just test-answers    answers of the benchmarks' queries against DuckDB" >&2
    @echo "  just package-test    wheel and Debian package" >&2
    @echo "  just prove-all       proofs in full size (small ones have run)" >&2
    @echo "all of it, in hours: just test-all" >&2

# Run everything that can fail: tests, features, answers, packages, random queries, proofs in full size. Takes hours.
test-all: _venv _httpfs _azurite _test test-features test-answers test-groups subqueries && prove-pushes prove-all prove-cluster
    cargo build --package tidetable-cli --no-default-features
    "{{ just_executable() }}" package-test "{{ tidetable }}"

_test:
    @"{{ just_executable() }}" _venv || echo "tests that need DuckDB or protobuf for Python are skipped: they could not be installed" >&2
    @"{{ just_executable() }}" _httpfs || echo "tests that need DuckDB's httpfs, delta or iceberg are skipped: it could not be installed" >&2
    @"{{ just_executable() }}" _azurite || echo "the test that needs azurite is skipped: it could not be installed" >&2
    INSTA_UPDATE=no cargo test --workspace --no-default-features {{ without }}

# Ask the queries of the benchmarks of tidetable and of DuckDB, on little data: all answers must be equal. Ratios mean nothing here.
test-answers: _venv
    rm -rf "{{ target }}/answers"
    cargo build --workspace --no-default-features {{ without }} --bins --examples
    "$TIDETABLE_PYTHON" -B bench/sql.py "{{ target }}/debug/tidetable" "{{ target }}/debug/queries" "{{ target }}/debug/examples" "$TIDETABLE_PYTHON" "{{ target }}/answers" --general --scale 0.01 --runs 1
    "$TIDETABLE_PYTHON" -B bench/tsbs.py "{{ target }}/debug/tidetable" "{{ target }}/debug/queries" "$TIDETABLE_PYTHON" "{{ target }}/answers" --hosts 40 --hours 2 --runs 1
    "$TIDETABLE_PYTHON" -B bench/tall.py "{{ target }}/debug/tidetable" "{{ target }}/debug/queries" "$TIDETABLE_PYTHON" "{{ target }}/answers" --data household --rows 50000 --runs 1

# Random groups, outer joins and unions over each layout, against DuckDB: `just test-groups 500 7`.
test-groups QUERIES="200" SEED="1": _venv
    TIDETABLE_QUERIES="$1" TIDETABLE_SEED="$2" cargo test --no-default-features --package tidetable-sql --test queries -- nulls:: --nocapture

# Compare what is loaded of nasty CSV with a reference reader: `just nasty-csv 100000 7`. `just test` compares 200.
nasty-csv FILES="2000" SEED="1": _venv _build
    "$TIDETABLE_PYTHON" -B tests/nasty_csv/agree.py "{{ target }}/nasty-csv" --files "$1" --seed "$2"
    "$TIDETABLE_PYTHON" -B tests/nasty_csv/compare.py "{{ tidetable }}" "{{ target }}/nasty-csv" --files "$1" --seed "$2"

# Kill a push N times, and compare what is in the emulator: `just prove-pushes 200`.
prove-pushes N="200": _venv
    TIDETABLE_KILLS="$1" cargo test --no-default-features --features {{ features }} --package e2e -- bigtable::transfer::many_kills --ignored

# Run the tests of what is behind cargo features, in a build of its own: they compile DataFusion with all its features.
test-features: _venv
    INSTA_UPDATE=no cargo test --no-default-features --features {{ features }} --package tidetable-cli --package tidetable-bigtable --package tidetable-cluster --package tidetable-postgres
    INSTA_UPDATE=no cargo test --no-default-features --features {{ features }} --package e2e -- bigtable:: cluster:: postgres::

# Write snapshots, outputs in documents and reference pages again, where they changed on purpose: `git diff` shows how.
snapshots:
    INSTA_UPDATE=always cargo test --workspace --no-default-features {{ without }} --lib objects::
    INSTA_UPDATE=always cargo test --workspace --no-default-features {{ without }} --test e2e -- snapshots:: documents:: json_output::

# Build the documentation as a site, docs/ read by mdBook.
docs:
    @command -v mdbook >/dev/null || cargo install mdbook --locked
    mdbook build docs --dest-dir "{{ target }}/book"

# Measure the layouts of weather-balloons and draw docs/images/layouts.svg.
picture: _build
    python3 -B docs/images/layouts.py "{{ tidetable }}"

# Run the samples and draw docs/images/*.png, pages as chromium shows them.
page-picture: _build _venv
    "$TIDETABLE_PYTHON" -B docs/images/pages.py "{{ tidetable }}"

# Formatting, lints, circles between files, documentation, and the sample data against its description.
lint:
    python3 -B tests/house.py --circles
    cargo fmt --all --check
    cargo clippy --workspace --all-targets {{ without }} -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps {{ without }}
    python3 sample-data/smart-meters/make.py --check
    python3 sample-data/server-metrics/record.py --check
    python3 sample-data/market-data/make.py --check
    python3 sample-data/weather-balloons/make.py --check
    python3 sample-data/schema-patterns/check.py
    python3 sample-data/bigtable-dump/check.py

# Lints of features that are off by default.
lint-features:
    cargo clippy --all-targets --no-default-features --features {{ features }} --package tidetable-cli --package tidetable-bigtable --package tidetable-cluster --package tidetable-postgres --package e2e -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --no-default-features --features {{ features }} --package tidetable-cli --package tidetable-bigtable --package tidetable-cluster --package tidetable-postgres

# List crates, directories, sizes, and circles between files; fails while there are any.
house:
    python3 -B tests/house.py

# What CI runs: lints, tests, the first command of the README in an empty root, then the packages, of the binary that is there.
ci: lint _venv test test-answers lint-features test-features
    root="$(mktemp -d)" && trap 'rm -rf "$root"' EXIT && "{{ just_executable() }}" run smart-meters --root "$root"
    "{{ just_executable() }}" package-test "{{ tidetable }}"

# Load generated telemetry with tidetable and its peers in turn: `just bench --only csv --scale 1 --runs 5 --seed 2`.
bench *ARGS: _release _peers
    cargo build --release --package tidetable-testkit --examples
    python3 -B bench/run.py "{{ release }}" "{{ target }}/release/examples" "{{ peers }}/bin/python" data/bench "$@"

# Ask tidetable and DuckDB the same questions in turn: `just bench-sql`, `just bench-sql --general`, `just bench-sql --only hour --runs 15`.
bench-sql *ARGS: _peers
    cargo build --release --package tidetable-cli --package tidetable-bench --bin tidetable --bin queries
    cargo build --release --package tidetable-testkit --examples
    python3 -B bench/sql.py "{{ release }}" "{{ target }}/release/queries" "{{ target }}/release/examples" "{{ peers }}/bin/python" data/bench "$@"

# The same with the fifteen queries of TSBS, cpu-only, and with chdb: `just bench-tsbs`, `just bench-tsbs --hosts 400 --seed 3`.
bench-tsbs *ARGS: _peers
    cargo build --release --package tidetable-cli --package tidetable-bench --bin tidetable --bin queries
    python3 -B bench/tsbs.py "{{ release }}" "{{ target }}/release/queries" "{{ peers }}/bin/python" data/bench "$@"

# The same of tall tables, a row an event, as `tidetable new` lays them out: `just bench-tall --data flights`.
bench-tall *ARGS: _peers
    cargo build --release --package tidetable-cli --package tidetable-bench --bin tidetable --bin queries
    python3 -B bench/tall.py "{{ release }}" "{{ target }}/release/queries" "{{ peers }}/bin/python" data/bench "$@"

# The same of millions of entities with few readings each, and their load: `just bench-keys --ids uuids --runs 3`.
bench-keys *ARGS: _peers
    cargo build --release --package tidetable-cli --package tidetable-bench --bin tidetable --bin queries
    python3 -B bench/keys.py "{{ release }}" "{{ target }}/release/queries" "{{ peers }}/bin/python" data/bench "$@"

# A root in a bucket against one in a directory and DuckDB's httpfs, without and with 30 ms a reply: `just bench-bucket --scale 0.1 --only load`.
bench-bucket *ARGS: _release _httpfs
    cargo build --release --package tidetable-bucket-server
    cargo build --release --package tidetable-testkit --examples
    python3 -B bench/bucket.py "{{ release }}" "{{ target }}/release/bucket-server" "{{ target }}/release/examples" "{{ httpfs }}/bin/python" data/bench "$@"

# `serve`, `push`, `pull` and `diff` over loopback, server and client on the same two cores: `just bench-bigtable --scale 1 --only serve`.
bench-bigtable *ARGS: _venv
    cargo build --release --package tidetable-cli --features {{ features }}
    cargo build --release --package tidetable-bigtable --example read_load --example write_sink
    cargo build --release --package tidetable-testkit --examples
    python3 -B bench/bigtable.py "{{ release }}" "{{ target }}/release/examples/read_load" "{{ target }}/release/examples" data/bench --python "$TIDETABLE_PYTHON" "$@"

# Runs on executors of one core each against runs in one process: `just bench-cluster --days 10 --meters 20000`.
bench-cluster *ARGS:
    cargo build --release --package tidetable-cli --features {{ features }}
    cargo build --release --package tidetable-cluster --example units
    cargo build --release --package tidetable-bucket-server
    cargo build --release --package tidetable-testkit --examples
    python3 -B bench/cluster.py "{{ release }}" "{{ target }}/release/bucket-server" "{{ target }}/release/examples" data/bench --units "{{ target }}/release/examples/units" "$@"

# `compare`, `heatmap` and `lint` of the reference in five layouts, beside its loads: `just bench-advisor --scale 0.1`.
bench-advisor *ARGS: _release
    cargo build --release --package tidetable-testkit --examples
    python3 -B bench/advisor.py "{{ release }}" "{{ target }}/release/examples" data/bench "$@"

# Time what looks back over 1,000 days of runs, in data/bench/history: `just bench-history --days 100 --runs 3`.
bench-history *ARGS: _release
    cargo build --release --package tidetable-testkit --examples
    python3 -B bench/history.py "{{ release }}" "{{ target }}/release/examples" data/bench/history "$@"

# Measure the parts of a load and of reading: `just bench-micro`, `just bench-micro parse`.
bench-micro *ARGS:
    cargo bench --package tidetable-bench --bench micro -- "$@"

# Time the stages of a load of FOLDER, without SQL in the build: `just bench-load data/bench/inputs/meter-20000x10-irregular-1/csv`.
bench-load *ARGS:
    cargo run --release --package tidetable-bench --bin load -- "$@"

# Needs cargo-fuzz and a C++ compiler; a gigabyte of memory is a finding, too.
# Feed TARGET (csv, sst, footer, index, keys, numbers, lists, manifest, layout or request) arbitrary bytes for so many SECONDS.
fuzz TARGET SECONDS="60":
    mkdir -p "fuzz/corpus/$1"
    features="$([ "$1" != request ] || echo bigtable)" && CARGO_TARGET_DIR="{{ target }}/fuzz" cargo fuzz run --sanitizer none --features "$features" "$1" "fuzz/corpus/$1" "fuzz/seeds/$1" -- -max_total_time="$2" -max_len=65536 -timeout=20 -rss_limit_mb=1024

# Compare 10,000 random subqueries with nested loops and DuckDB: `just subqueries`, `just subqueries 500 7` for another number and seed.
subqueries count="10000" seed="1":
    TIDETABLE_SUBQUERIES={{ count }} TIDETABLE_SUBQUERIES_SEED={{ seed }} cargo test -p tidetable-sql --no-default-features --test queries -- --nocapture subqueries_equal

# Prove what the store promises: `just prove model`, `just prove power --seeds 50 --size 20`; alone it lists the proofs.
prove *ARGS:
    cargo run --quiet --package tidetable-proof --bin prove -- "$@"

# Every proof in its full size, which takes an hour or more. What each promises and has reached: `docs/reliability.md`.
prove-all: prove-model prove-histories prove-power prove-faults prove-replies prove-kills prove-damage prove-planted prove-buckets prove-server

# A million random operations against a map of cells.
prove-model: (prove "model" "--seed" "1" "--seeds" "1000" "--size" "1000")

# 100,000 operations on the names of inputs: files come, change, grow, are copied, renamed, removed, left out; rows are deleted.
prove-histories: (prove "histories" "--seed" "1" "--seeds" "1000" "--size" "100")

# The power goes at every change of a disk.
prove-power: (prove "power" "--seed" "10" "--seeds" "16" "--size" "20")

# Every call of a disk fails in every way.
prove-faults: (prove "faults" "--seed" "10" "--seeds" "8" "--size" "10")

# 100,000 commits over a line that loses answers: many short tables are far quicker than few long ones.
prove-replies: (prove "replies" "--seed" "1" "--seeds" "5000" "--size" "20")

# 1,000 killed processes.
prove-kills: (prove "kills" "--seed" "2" "--size" "1000")

# Every bit of small files, 100,000 of large ones, and coarser damage.
prove-damage: (prove "bits" "--size" "1") (prove "damages" "--size" "2000") (prove "large" "--size" "100000")

# Planted bugs, each of which a proof must find.
prove-planted:
    cargo run --quiet --package tidetable-proof --features planted --bin prove -- planted
    cargo test --quiet --package tidetable-proof --features planted --test planted

# The store in a bucket: one in memory, then one of a server on this machine, if that can be installed.
prove-buckets:
    "{{ just_executable() }}" prove buckets
    python3 -B crates/proof/bucket.py "{{ target }}/bucket-venv" "{{ just_executable() }}" prove buckets --seeds 5

# The store in a bucket of our own server, by the real S3 client: the model, 100,000 commits of one writer and of two, a kill at every request. Optimised, it takes half an hour; not optimised, hours.
prove-server: (_prove-server "server-model" "200" "500") (_prove-server "server-steps" "500" "20") (_prove-server "server-replies" "5000" "20") (_prove-server "server-writers" "5000" "10") (_prove-server "server-kills" "4" "8")

_prove-server PROOF SEEDS SIZE:
    cargo run --release --quiet --package tidetable-proof --bin prove -- "$1" --seeds "$2" --size "$3"

# Kills of executors, of the scheduler and of the driver while runs go on, and seeds of faults that Ballista injects: `just prove-cluster 100 100`.
prove-cluster KILLS="100" SEEDS="100":
    TIDETABLE_KILLS="$1" cargo test --release --no-default-features --features {{ features }} --package e2e --test e2e -- cluster::failures --nocapture
    TIDETABLE_SEEDS="$2" cargo test --release --package tidetable-cluster --test cluster -- chaos --nocapture

# A bucket server for people: `just bucket-server --port 9000 --delay 30ms`; `just bucket-server --help` lists its options.
bucket-server *ARGS:
    @cargo run --quiet --package tidetable-bucket-server -- "$@"

# Fetch the whole of a sample's data set into data/fetched/NAME.
fetch-data NAME: _venv
    "$TIDETABLE_PYTHON" "sample-data/$1/make.py" --full "data/fetched/$1"

# Record this machine's metrics until Ctrl-C: `just record-metrics --every 2 --seconds 60`.
record-metrics *ARGS:
    python3 sample-data/server-metrics/record.py --output "data/fetched/server-metrics/$(date -u +%Y%m%dT%H%M%SZ).csv" "$@"

# Remove tables, exports and run records from data/; what was fetched or made for a bench stays.
clean-data:
    if [ -d data ]; then find data -mindepth 1 -maxdepth 1 ! -name fetched ! -name bench -exec rm -rf {} +; fi

_build:
    @cargo build --package tidetable-cli --no-default-features

_release:
    cargo build --release --package tidetable-cli

_venv:
    @[ -x "$TIDETABLE_PYTHON" ] || python3 -m venv "{{ venv }}"
    @"$TIDETABLE_PYTHON" -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt -r crates/page/tests/requirements.txt -r sample-data/smart-meters/requirements.txt

_httpfs:
    @[ -x "{{ httpfs }}/bin/python" ] || python3 -m venv "{{ httpfs }}"
    @"{{ httpfs }}/bin/python" -m pip install --quiet --disable-pip-version-check -r bench/requirements-httpfs.txt

_azurite:
    @[ -x "$TIDETABLE_AZURITE" ] || npm install --silent --no-audit --no-fund --prefix "{{ azurite }}" azurite@3.37.0

# One by one: a peer that cannot be installed is missing, and the others are measured.
_peers:
    @[ -x "{{ peers }}/bin/python" ] || python3 -m venv "{{ peers }}"
    @while read -r peer; do "{{ peers }}/bin/python" -m pip install --quiet --disable-pip-version-check "$peer" </dev/null || echo "missing: $peer" >&2; done <bench/requirements.txt
