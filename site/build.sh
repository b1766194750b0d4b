#!/usr/bin/env bash
# Builds the site of the documentation with mdBook: site/build.sh FOLDER. The pages and the sidebar are those of docs/README.md, an
# index of messages is made from the runbooks, and only links that GitHub resolves in another way are changed.
set -euo pipefail
to=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
book=$(mktemp -d)
trap 'rm -rf "$book"' EXIT
mkdir -p "$book/src/site" "$book/src/javascript"
cp site/book.toml "$book"
cp -R README.md SECURITY.md CHANGELOG.md CONTRIBUTING.md docs "$book/src"
cp -R site/page "$book/src/site"
cp javascript/*.js "$book/src/javascript"
export MDBOOK_OUTPUT__HTML__GIT_REPOSITORY_URL
MDBOOK_OUTPUT__HTML__GIT_REPOSITORY_URL=$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)
cd "$book/src"
mv site/page/id.md .

# The messages that have a runbook, whose text begins with the SQLSTATE.
{
    printf '# Error messages\n\nEach message leads to its runbook, which says what to do.\n\n| message | SQLSTATE |\n| --- | --- |\n'
    awk '/^## / { runbooks = /^## Runbooks/ }
        runbooks && /^### / { message = substr($0, 5) }
        message && / fixed by: / {
            anchor = tolower(message)
            gsub(/[^a-z0-9 _-]/, "", anchor)
            gsub(" ", "-", anchor)
            printf "| [%s](docs/operate.md#%s) | %s |\n", message, anchor, substr($0, 2, index($0, ",") - 2)
            message = ""
        }' docs/operate.md
} >messages.md

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
