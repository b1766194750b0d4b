# The targets of PGXS: make, make install, make installcheck. Set PG_CONFIG=… if the PostgreSQL to build for is not the first on
# PATH. They need Rust, cargo-pgrx of the version that Cargo.toml pins, clang and the server's headers; ./dev installs these
# automatically.

PG_CONFIG ?= pg_config
CARGO ?= cargo
DESTDIR ?=

target := $(or $(CARGO_TARGET_DIR),target)
ifneq ($(words $(target)),1)
$(error the target folder "$(target)" has a space in its name, at which make takes it for two: set CARGO_TARGET_DIR to \
	one without)
endif

# make clean also works after PostgreSQL has been removed.
ifneq ($(MAKECMDGOALS),clean)
major := $(shell '$(PG_CONFIG)' --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
ifeq ($(major),)
$(error "$(PG_CONFIG)" does not answer: name a pg_config, as in make PG_CONFIG=/usr/lib/postgresql/17/bin/pg_config)
endif
pg_config := $(shell command -v '$(PG_CONFIG)')
bindir := $(shell '$(PG_CONFIG)' --bindir)
pkglibdir := $(shell '$(PG_CONFIG)' --pkglibdir)
sharedir := $(shell '$(PG_CONFIG)' --sharedir)
endif

empty :=
space := $(empty) $(empty)
# For each installation a folder of its own, since what is built for one does not fit another.
build := $(target)/pg_snowflake-make/$(subst $(space),_,$(subst /,_,$(bindir)))
stage := $(build)/stage
export PGRX_HOME := $(abspath $(build))/pgrx

# What is made stands in folders whose names make cannot hold where they have a space: this file says when it was made.
built := $(build)/built
library := $(stage)$(pkglibdir)/pg_snowflake.so
sources := Cargo.toml Cargo.lock core/Cargo.toml pg_snowflake.control $(shell find core/src src sql registry -type f)

pgrx_version := $(shell sed -n 's/^pgrx *=.*"=\([0-9.]*\)".*/\1/p' Cargo.toml)
# Another version would stop halfway, or build for a server that it does not know.
need_cargo_pgrx = $(if $(filter $(pgrx_version),$(shell $(CARGO) pgrx --version 2>&1)),,$(error building needs \
	cargo-pgrx $(pgrx_version): cargo install --locked cargo-pgrx --version $(pgrx_version)))

# As ./dev test runs them, each in a database of its own, but on the server that is there.
define regress
'$(pkglibdir)/pgxs/src/test/$(1)' --inputdir=pg_test --outputdir='$(build)/$(notdir $(1))' --bindir='$(bindir)' \
	--load-extension=pg_snowflake --dbname=contrib_regression $(2)

endef
scripts = $(basename $(notdir $(wildcard pg_test/$(1)/*)))

.PHONY: all install uninstall installcheck clean

all: $(built)

# So that `sudo make install` after `make` compiles nothing as root. What an earlier version left in the stage would be
# installed too.
$(built): $(sources)
	$(need_cargo_pgrx)
	rm -rf '$(stage)'
	$(CARGO) pgrx init --no-run --pg$(major) '$(pg_config)'
	$(CARGO) pgrx package --pg-config '$(pg_config)' --out-dir '$(stage)'
	registry/install.sh '$(stage)$(sharedir)/extension'
	touch '$@'

install: all
	install -d '$(DESTDIR)$(pkglibdir)' '$(DESTDIR)$(sharedir)/extension'
	install -m 755 '$(library)' '$(DESTDIR)$(pkglibdir)'
	install -m 644 '$(stage)$(sharedir)/extension/'* '$(DESTDIR)$(sharedir)/extension'

uninstall:
	rm -f '$(DESTDIR)$(pkglibdir)/pg_snowflake.so' '$(DESTDIR)$(sharedir)/extension/'pg_snowflake.control \
		'$(DESTDIR)$(sharedir)/extension/'pg_snowflake--*.sql \
		'$(DESTDIR)$(sharedir)/extension/'pg_snowflake_registry.control \
		'$(DESTDIR)$(sharedir)/extension/'pg_snowflake_registry--*.sql

# On the running server that PGHOST, PGPORT and PGUSER name, once the extension is installed there.
installcheck:
	mkdir -p '$(build)'
	$(foreach test,$(call scripts,sql),$(call regress,regress/pg_regress,$(test)))
	$(foreach test,$(call scripts,specs),$(call regress,isolation/pg_isolation_regress,$(test)))

clean:
	rm -rf '$(target)/pg_snowflake-make'
