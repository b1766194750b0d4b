#!/usr/bin/env bash
# Builds the site of the documentation with mdBook: docs/site/build.sh FOLDER. docs/README.md lists the pages, and policies/src/messages.rs
# the error messages. Only links that GitHub resolves in another way are changed.
set -euo pipefail
to=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
book=$(mktemp -d)
trap 'rm -rf "$book"' EXIT
mkdir -p "$book/src/javascript"
cp docs/site/book.toml "$book"
cp -R README.md CHANGELOG.md CONTRIBUTING.md docs "$book/src"
cp javascript/*.js "$book/src/javascript"
cargo run --quiet --package pg_snowflake_policies --example messages >"$book/src/messages.md"
export MDBOOK_OUTPUT__HTML__GIT_REPOSITORY_URL
MDBOOK_OUTPUT__HTML__GIT_REPOSITORY_URL=$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)
cd "$book/src"
mv docs/site/page/id.md .
rm -r docs/site/{tests,book.toml,build.sh}

# A folder's README.md becomes index.html, what is not in the book is in the repository, and other sites have the badges.
at=$MDBOOK_OUTPUT__HTML__GIT_REPOSITORY_URL
sed -i -E "s#\]\((\.\./\.\./|LICENSE|javascript/README)#](@\1#g
    /^\[?!\[.*(badge|shields)/d" ./*.md
sed -i -E "s#\]\(\.\./(\.\./\.\./)#](@\1#g
    s#\]\(\.\./([^.)]+(/|\)|\.rs))#](@\1#g" docs/*.md
sed -i -E "s#\]\(@\.\./\.\./#]($at/#g
    s#\]\(@#]($at/blob/main/#g
    s#(\]\([^):]*)README\.md#\1index.md#g
    s#^\`\`\`output#\`\`\`text#" ./*.md docs/*.md
# Groups are titles of the sidebar, and the first link of an item is a page.
{
    printf '[pg_snowflake](README.md)\n[Take an ID apart](id.md)\n[Error messages](messages.md)\n[All pages](docs/README.md)\n\n'
    sed -nE 's/^## /# /p; s/^- (\[[^]]*\]\()([^)]*\)).*/- \1docs\/\2/p' docs/README.md | sed 's,docs/\.\./,,'
} >SUMMARY.md

cd "$book"
mdbook build --dest-dir "$to"
