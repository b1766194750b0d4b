# For those who are used to PGXS: make, make install, make installcheck, each with PG_CONFIG=… where the PostgreSQL in
# question is not the first on PATH. What they need is Rust, cargo-pgrx of the version that Cargo.toml pins, clang and
# the server's headers; ./dev installs these by itself.

PG_CONFIG ?= pg_config
CARGO ?= cargo
DESTDIR ?=

major := $(shell $(PG_CONFIG) --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
ifeq ($(major),)
$(error "$(PG_CONFIG)" does not answer: name a pg_config, as in make PG_CONFIG=/usr/lib/postgresql/17/bin/pg_config)
endif
bindir := $(shell $(PG_CONFIG) --bindir)
pkglibdir := $(shell $(PG_CONFIG) --pkglibdir)
sharedir := $(shell $(PG_CONFIG) --sharedir)

target := $(or $(CARGO_TARGET_DIR),target)
# For each installation a folder of its own, since what is built for one does not fit another.
build := $(target)/pg_snowflake-make/$(subst /,_,$(abspath $(bindir)))
stage := $(build)/stage
export PGRX_HOME := $(abspath $(build))/pgrx

library := $(stage)$(pkglibdir)/pg_snowflake.so
sources := Cargo.toml Cargo.lock pg_snowflake.control $(shell find src sql -type f)

# As ./dev test runs them, each in a database of its own, but on the server that is there.
define regress
$(pkglibdir)/pgxs/src/test/$(1) --inputdir=pg_test --outputdir=$(build)/$(notdir $(1)) --bindir=$(bindir) \
	--load-extension=pg_snowflake --dbname=contrib_regression $(2)

endef
scripts = $(basename $(notdir $(wildcard pg_test/$(1)/*)))

.PHONY: all install uninstall installcheck clean

all: $(library)

# So that `sudo make install` after `make` compiles nothing as root.
$(library): $(sources)
	$(CARGO) pgrx init --no-run --pg$(major) $(shell command -v $(PG_CONFIG))
	$(CARGO) pgrx package --pg-config $(shell command -v $(PG_CONFIG)) --out-dir $(stage)
	touch $@

install: all
	install -d '$(DESTDIR)$(pkglibdir)' '$(DESTDIR)$(sharedir)/extension'
	install -m 755 $(library) '$(DESTDIR)$(pkglibdir)'
	install -m 644 $(stage)$(sharedir)/extension/* '$(DESTDIR)$(sharedir)/extension'

uninstall:
	rm -f '$(DESTDIR)$(pkglibdir)/pg_snowflake.so' '$(DESTDIR)$(sharedir)/extension/'pg_snowflake.control \
		'$(DESTDIR)$(sharedir)/extension/'pg_snowflake--*.sql

# On the running server that PGHOST, PGPORT and PGUSER name, once the extension is installed there.
installcheck:
	$(foreach test,$(call scripts,sql),$(call regress,regress/pg_regress,$(test)))
	$(foreach test,$(call scripts,specs),$(call regress,isolation/pg_isolation_regress,$(test)))

clean:
	rm -rf $(target)/pg_snowflake-make
