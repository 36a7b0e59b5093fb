# Index of commands. The logic lives in xtask and scripts; every line here can be typed by hand.

# List the commands
default:
    @just --list

# Start the services that tests need: PostgreSQL 18, or 15 when asked
services *version:
    scripts/services start {{ version }}

# Stop the services
stop:
    scripts/services stop

# Run the tests; arguments go to nextest
test *args: services
    env="$(scripts/services env)" && eval "$env" && cargo nextest run --workspace {{ args }}

# Check the formatting and the code
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- --deny warnings

# Format the code
fmt:
    cargo fmt --all

# Check that no crate uses a layer above its own
layers:
    cargo xtask layers

# Write the generated files anew; look at the difference before committing it
bless *args: services
    env="$(scripts/services env)" && eval "$env" && OKT_BLESS=1 cargo nextest run --workspace {{ args }}

# Run the program, for example: just run serve
run *args:
    cargo run --bin okt -- {{ args }}

# Hold the running API against its description
contract *args: services
    cargo build --workspace
    scripts/contract {{ args }}

# Let OAuth clients in through the real pages, in a real browser
oauth-clients *args: services
    cargo build --workspace
    scripts/oauth-clients {{ args }}

# Make clients from the OpenAPI document, and let each make its first calls
api-clients *args: services
    cargo build --workspace
    scripts/api-clients {{ args }}

# Export a repository in every format, and let tools of these formats read the files
exports *args: services
    cargo build --workspace
    scripts/exports {{ args }}

# Check packages, proxies, alerts, the dashboard, and the pages about running it
packaging *args: services
    cargo build --workspace
    scripts/packaging {{ args }}

# Follow every link of the documentation
links:
    scripts/links

# Build the web UI into web/dist
web:
    scripts/web build

# Walk through the web UI in a real browser
web-tests *args: services web
    cargo build --workspace
    scripts/web-tests {{ args }}

# Everything that must hold before a change is accepted
ci:
    bash .ci/run
