#!/bin/sh
# Brings the embedded Postgres of a data directory to another major version, by pg_upgrade. Stop the processor first.
#
#   deploy/upgrade-postgres.sh DATA_DIR OLD_BIN NEW_BIN
#   deploy/upgrade-postgres.sh /var/lib/writ /usr/lib/postgresql/15/bin /usr/lib/postgresql/17/bin
#
# It copies: the old cluster stays beside the new one, as data.old, until somebody removes it. If it fails, nothing has
# changed but for data.new and upgrade, which may be removed.
set -eu

if [ $# -ne 3 ]; then
    sed -n '2,/^set -eu/p' "$0" | sed -e '/^set -eu/d' -e 's/^# \{0,1\}//' >&2
    exit 2
fi
dir=$(cd "$1/postgres" && pwd) old=$2 new=$3
owner=$(stat -c %u "$dir/data") group=$(stat -c %g "$dir/data")
if [ -e "$dir/data/postmaster.pid" ]; then
    echo "$dir/data is served, or was killed: stop the processor, or start and stop it once" >&2
    exit 1
fi

# The server does not run as root: neither do its programs.
as_owner() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid="$owner" --regid="$group" --clear-groups -- "$@"
    else
        "$@"
    fi
}

mkdir -m 700 "$dir/data.new" "$dir/upgrade"
chown "$owner:$group" "$dir/data.new" "$dir/upgrade"
PGPASSWORD=$(cat "$dir/password")
export PGPASSWORD

# Checksums of pages have to be as they were.
checksums=--no-data-checksums
if as_owner "$old/pg_controldata" -D "$dir/data" | grep -q '^Data page checksum version: *1'; then
    checksums=--data-checksums
elif ! "$new/initdb" --help | grep -q -e --no-data-checksums; then
    checksums=
fi
# shellcheck disable=SC2086 # none or one word
as_owner "$new/initdb" -D "$dir/data.new" --username=writ --pwfile="$dir/password" --auth=scram-sha-256 \
    --encoding=UTF8 --locale=C $checksums >/dev/null
(cd "$dir/upgrade" && as_owner "$new/pg_upgrade" --old-bindir="$old" --new-bindir="$new" \
    --old-datadir="$dir/data" --new-datadir="$dir/data.new" --socketdir="$dir/upgrade" --username=writ)
mv "$dir/data" "$dir/data.old"
mv "$dir/data.new" "$dir/data"
rm -rf "$dir/upgrade"
echo "$dir/data is upgraded; $dir/data.old is what it was"
