# make, make install, make installcheck: the targets of PGXS, for a library that cargo builds. PG_CONFIG=… names the PostgreSQL to
# build for, else the first on PATH. Needs Rust, libclang and the server's headers. Only `make` compiles: `make install` copies.

PG_CONFIG ?= pg_config
CARGO ?= cargo
RUSTC ?= rustc
# release, which users get, or a name in .cargo/profiles, which has what it changes.
PROFILE ?= release
# For cargo, as in CARGO_FLAGS=--offline.
CARGO_FLAGS ?=
DESTDIR ?=

empty :=
space := $(empty) $(empty)
# The tree, which is another folder than the current one in a VPATH build: make -f ../Makefile.
srcdir := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
ifeq ($(wildcard $(srcdir)/Cargo.toml),)
$(error the path of this Makefile has a space, which make takes for two names: build in the tree, or move it)
endif
target := $(or $(CARGO_TARGET_DIR),target)
quote := '
ifneq ($(findstring $(quote),$(CURDIR)$(srcdir)$(target)$(PG_CONFIG)),)
$(error a path has a quote in it: build in a folder without one)
endif
ifneq ($(words $(target)),1)
$(error CARGO_TARGET_DIR "$(target)" has a space, which make takes for two names: set it to a path without one)
endif
ifneq ($(filter-out /%,$(target)),)
absolute_target := $(CURDIR)/$(target)
else
absolute_target := $(target)
endif

# make clean also works after PostgreSQL has been removed.
ifneq ($(MAKECMDGOALS),clean)
major := $(shell '$(PG_CONFIG)' --version 2>/dev/null | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
ifeq ($(major),)
$(error "$(PG_CONFIG)" does not answer: name a pg_config, as in make PG_CONFIG=/usr/lib/postgresql/17/bin/pg_config)
endif
majors := $(shell sed -n 's/^pg\([0-9]*\) = .*/\1/p' '$(srcdir)/Cargo.toml')
ifeq ($(filter $(major),$(majors)),)
$(error PostgreSQL $(major) is not supported, only $(majors): name another pg_config with PG_CONFIG=…)
endif
# Its whole path, since cargo runs in other folders.
pg_config := $(shell p=$$(command -v '$(PG_CONFIG)'); case $$p in (/*) echo "$$p" ;; (*) echo "$(CURDIR)/$$p" ;; esac)
bindir := $(shell '$(PG_CONFIG)' --bindir)
pkglibdir := $(shell '$(PG_CONFIG)' --pkglibdir)
datadir := $(shell '$(PG_CONFIG)' --sharedir)
endif

version := $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' '$(srcdir)/Cargo.toml')
rust_version := $(shell sed -n 's/^rust-version = "\(.*\)"$$/\1/p' '$(srcdir)/Cargo.toml')
DLSUFFIX := $(if $(and $(filter Darwin,$(shell uname -s)),$(filter-out 15,$(major))),.dylib,.so)
# What is built for one installation does not fit another.
build := $(target)/pg$(major)-$(shell printf %s '$(bindir)' | cksum | cut -d ' ' -f 1)
absolute_build := $(absolute_target)/$(notdir $(build))
# Most crates are the same for all majors and profiles, so cargo compiles them once, here.
shared := $(target)/pg_snowflake-crates
absolute_shared := $(absolute_target)/$(notdir $(shared))
built := $(build)/$(PROFILE)/release/libpg_snowflake$(if $(filter Darwin,$(shell uname -s)),.dylib,.so)
# The files to install, and when their build began.
stage := $(build)/$(PROFILE)/stage
started := $(build)/$(PROFILE)/started

# In this order, as the install script of pg_snowflake. src/lib.rs has it.
sql := $(addprefix $(srcdir)/,$(shell sed -n 's,^extension_sql_file!."../\(sql/[a-z0-9_]*.sql\)".*,\1,p' '$(srcdir)/src/lib.rs'))

# Panic messages name source files. They name none of this machine's folders, so the library is the same wherever it is built.
# The last prefix that fits counts. A user's RUSTFLAGS come first. The bindings are not formatted, since not every Rust has rustfmt.
export RUSTFLAGS := $(value RUSTFLAGS)
rustflags = $$RUSTFLAGS --remap-path-prefix="$$(pwd -P)"=pg_snowflake \
	--remap-path-prefix="$${CARGO_HOME:-$$HOME/.cargo}"=cargo --remap-path-prefix='$(absolute_shared)'=target \
	-Cembed-bitcode=yes $(undefined_symbols)
ifeq ($(shell uname -s),Darwin)
# The server's symbols are there only once the server has loaded the library.
undefined_symbols := -Clink-arg=-Wl,-undefined,dynamic_lookup
endif

rust = $(shell cd '$(srcdir)' && '$(RUSTC)' --version 2>/dev/null | sed -n 's/^rustc \([0-9.]*\).*/\1/p')
oldest_rust = $(shell printf '%s\n' '$(rust_version)' '$(rust)' | sort -V | head -n 1)
system_linker = $(shell cd '$(srcdir)' && '$(RUSTC)' -vV | sed -n 's/^host: x86_64-unknown-linux-gnu$$/-Clinker-features=-lld/p')
has_headers = $(shell test ! -f "$$('$(PG_CONFIG)' --includedir-server)/postgres.h" || echo yes)
libclang := /usr/lib/llvm-*/lib/clang/*/include/stddef.h
has_libclang = $(or $(LIBCLANG_PATH),$(LLVM_CONFIG_PATH),$(shell command -v clang || command -v llvm-config || ls $(libclang) 2>&-))
# Before minutes of compiling, one line for each thing that is missing.
define refuse_what_is_missing
$(if $(filter $(rust_version),$(oldest_rust)),,$(error Rust $(rust_version) or newer is needed, and "$(RUSTC)" is $(or \
	$(rust),not usable: $(shell cd '$(srcdir)' && '$(RUSTC)' --version 2>&1 | sed -n 1p)): install it with rustup, or name another\
	one with CARGO=… RUSTC=… or RUSTUP_TOOLCHAIN=…))
$(if $(shell command -v '$(CARGO)' || ls '$(CARGO)' 2>&-),,$(error "$(CARGO)" is missing: install cargo, or name one with CARGO=…))
$(if $(or $(filter release,$(PROFILE)),$(wildcard $(srcdir)/.cargo/profiles/$(PROFILE).toml)),,$(error there is no PROFILE \
	"$(PROFILE)": release, or a name in .cargo/profiles))
$(if $(filter $(words $(sql)),$(shell grep -c '^extension_sql_file!' '$(srcdir)/src/lib.rs')),,$(error src/lib.rs has an \
	extension_sql_file! that is not on one line, as make reads it))
$(if $(has_headers),,$(error the headers of PostgreSQL $(major) are missing: install them (on Debian and Ubuntu: \
	postgresql-server-dev-$(major))))
$(if $(has_libclang),,$(error libclang, which reads the headers, is missing: install clang (on Debian and Ubuntu: \
	libclang-dev), or name its folder with LIBCLANG_PATH=…))
endef

# As ./dev test runs them, each in a database of its own, but on the server that is there, with these settings of core's.
define regress
PGOPTIONS='-c client_min_messages=notice -c default_transaction_isolation=read\ committed' \
	'$(pkglibdir)/pgxs/src/test/$(1)' --inputdir='$(srcdir)/pg_test' --outputdir='$(build)/$(notdir $(1))' --bindir='$(bindir)' \
	--load-extension=pg_snowflake --dbname=contrib_regression $(2)

endef
scripts = $(basename $(notdir $(wildcard $(srcdir)/pg_test/$(1)/*)))
REGRESS = $(call scripts,sql)
ISOLATION = $(call scripts,specs)

# A command of cargo on the library, as it is built. The metadata has cargo keep the library of each major and profile beside the others.
cargo = cd '$(srcdir)' && unset CARGO_BUILD_TARGET MAKEFLAGS MFLAGS && set -f && RUSTFMT=true \
	PGRX_PG_CONFIG_PATH='$(pg_config)' CARGO_BUILD_BUILD_DIR='$(absolute_shared)' __CARGO_DEFAULT_LIB_METADATA=pg_snowflake \
	CARGO_ENCODED_RUSTFLAGS="$$(printf '%s\037' $(rustflags) | sed 's/.$$//')" '$(CARGO)' $(1) --locked $(CARGO_FLAGS) \
	--package pg_snowflake --lib --no-default-features --features pg$(major),pgrx/no-schema-generation --release $(settings) \
	--target-dir '$(absolute_build)/$(PROFILE)'

ifneq ($(PROFILE),release)
settings := --config '.cargo/profiles/$(PROFILE).toml'
endif

.PHONY: all lint install uninstall installcheck clean
# So that `make all install` installs what it has built.
.NOTPARALLEL:

# With link-time optimization, and the system's linker: lld keeps the tables for unwinding of functions that it drops, a tenth of the file.
# For tests, optimizing even across the units of the last crate would take a third of the time after a change. In a profile, `lto` would
# keep both from sharing the other crates; -Cembed-bitcode is what it needs, and cargo leaves out without it.
all:
	$(refuse_what_is_missing)
	@for folder in '$(build)/$(PROFILE)' '$(shared)'; do mkdir -p "$$folder" 2>/dev/null && test -w "$$folder" || { \
		echo "make: $$folder belongs to another user: remove it, or run make as that user" >&2; exit 1; }; done
	@rm -rf '$(stage)' '$(stage).new' && touch '$(started)'
	$(call cargo,rustc) --crate-type cdylib -- $(if $(filter testing,$(PROFILE)),-Clto=off,-Clto=fat $(system_linker))
	@test -f '$(built)' || { echo 'make: cargo has not written $(built): does its configuration set build.target?' >&2; exit 1; }
	mkdir '$(stage).new'
	cat $(sql) >'$(stage).new/pg_snowflake--$(version).sql'
	cat '$(srcdir)/sql/registry/pg_snowflake_registry.sql' >'$(stage).new/pg_snowflake_registry--$(version).sql'
	for upgrade in '$(srcdir)'/sql/*--*.sql '$(srcdir)'/sql/registry/*--*.sql; do \
		test ! -e "$$upgrade" || cp "$$upgrade" '$(stage).new'; done
	for control in pg_snowflake sql/registry/pg_snowflake_registry; do sed 's/@CARGO_VERSION@/$(version)/' \
		"$(srcdir)/$$control.control" >'$(stage).new'/"$${control##*/}.control"; done
	mv '$(stage).new' '$(stage)'

# Next to the build, whose binding of the server's headers it needs.
lint:
	$(call cargo,clippy) -- -D warnings
	$(call cargo,rustdoc) -- -D warnings --document-private-items

# Copies only, so that `sudo make install` compiles nothing as root.
install:
	@test -f '$(built)' && test -f '$(stage)/pg_snowflake.control' && test -f '$(started)' && test -z "$$(cd '$(srcdir)' && \
		find Cargo.* .cargo/profiles ids policies src sql pg_snowflake.control -type f -newer '$(absolute_build)/$(PROFILE)/started')" || { \
		echo 'make: nothing is built from these sources for $(bindir): run make first, as yourself' >&2; exit 1; }
	install -d '$(DESTDIR)$(pkglibdir)' '$(DESTDIR)$(datadir)/extension'
	install -m 755 '$(built)' '$(DESTDIR)$(pkglibdir)/pg_snowflake$(DLSUFFIX)'
	install -m 644 '$(stage)'/* '$(DESTDIR)$(datadir)/extension'

uninstall:
	rm -f '$(DESTDIR)$(pkglibdir)/pg_snowflake$(DLSUFFIX)' '$(DESTDIR)$(datadir)/extension/'pg_snowflake.control \
		'$(DESTDIR)$(datadir)/extension/'pg_snowflake--*.sql \
		'$(DESTDIR)$(datadir)/extension/'pg_snowflake_registry.control \
		'$(DESTDIR)$(datadir)/extension/'pg_snowflake_registry--*.sql

# On the running server that PGHOST, PGPORT and PGUSER name, once the extension is installed there.
installcheck:
	mkdir -p '$(build)'
	$(foreach test,$(REGRESS),$(call regress,regress/pg_regress,$(test)))
	$(foreach test,$(ISOLATION),$(call regress,isolation/pg_isolation_regress,$(test)))

clean:
	rm -rf '$(target)'/pg[0-9]*-* '$(shared)'
