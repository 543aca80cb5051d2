#!/bin/sh
# Installs forerun from a built binary, or takes it away again.
#
#   packaging/install.sh BINARY              PREFIX, DESTDIR and the folders below from the environment
#   packaging/install.sh --uninstall
#
# Called by `make install` and `make uninstall`, and by packaging/package.sh with a staging folder.
# Man pages and completions come from the binary itself, so they are never of another version.
set -eu
# Users enter the folders, whatever root's own files are.
umask 022

here=$(cd "$(dirname "$0")/.." && pwd)
PREFIX=${PREFIX:-/usr/local}
# Only some shells expand the ~ of an argument.
case $PREFIX in "~" | "~/"*) PREFIX=${HOME:?}${PREFIX#"~"} ;; esac
DESTDIR=${DESTDIR:-}
BINDIR=${BINDIR:-$PREFIX/bin}
MANDIR=${MANDIR:-$PREFIX/share/man}
DOCDIR=${DOCDIR:-$PREFIX/share/doc/forerun}
BASHDIR=${BASHDIR:-$PREFIX/share/bash-completion/completions}
ZSHDIR=${ZSHDIR:-$PREFIX/share/zsh/site-functions}
FISHDIR=${FISHDIR:-$PREFIX/share/fish/vendor_completions.d}
UNITDIR=${UNITDIR:-$PREFIX/lib/systemd/system}
# mount(8) looks for helpers in /sbin and nowhere else, whatever PREFIX is.
SBINDIR=${SBINDIR:-/sbin}
MANIFEST=$DOCDIR/manifest

say() { printf 'install: %s\n' "$*"; }
refuse() {
    say "$@" >&2
    exit 2
}
for path in "PREFIX=$PREFIX" "BINDIR=$BINDIR"; do
    case ${path#*=} in /*) ;; *) refuse "$path: must be an absolute path" ;; esac
done

# Makes a folder below DESTDIR, and notes each that was not there, with a slash at its end: these are removed.
folder() {
    [ -d "$DESTDIR$1" ] && return
    folder "$(dirname "$1")" && mkdir "$DESTDIR$1" || return
    echo "$1/" >> "$list"
}

# Writes standard input to a file below DESTDIR, with a mode, and notes it.
put() {
    folder "$(dirname "$2")"
    cat > "$DESTDIR$2.new"
    chmod "$1" "$DESTDIR$2.new"
    mv -f "$DESTDIR$2.new" "$DESTDIR$2"
    echo "$2" >> "$list"
}

# Writes the output of a command to a file below DESTDIR; of one that fails nothing.
put_output() {
    place=$1
    shift
    "$@" > "$made"
    put 644 "$place" < "$made"
}

unit() {
    put_output "$UNITDIR/$1" sed -e "/@SERVICE@/{r $here/packaging/systemd/service.in
d}" -e "s|@BINDIR@|$BINDIR|" "$here/packaging/systemd/$1.in"
}

uninstall() {
    if ! [ -f "$DESTDIR$MANIFEST" ]; then
        say "$DESTDIR$MANIFEST is not there: nothing was installed with this PREFIX" >&2
        exit 1
    fi
    folders=$(sed -n 's|/$||p' "$DESTDIR$MANIFEST" | sort -r)
    while read -r file; do
        case $file in
        */) ;;
        # One of another PREFIX that was installed since leads to no file of this one.
        */mount.forerun)
            target=$(readlink "$DESTDIR$file") || continue
            ! grep -Fxq -e "$target" "$DESTDIR$MANIFEST" || rm -f "$DESTDIR$file"
            ;;
        *) rm -f "$DESTDIR$file" ;;
        esac
    done < "$DESTDIR$MANIFEST"
    rm -f "$DESTDIR$MANIFEST"
    find "$DESTDIR$DOCDIR" -depth -type d -exec rmdir {} + 2>/dev/null || true
    # The deepest first; one in which others have put something stays.
    echo "$folders" | while read -r folder; do rmdir "$DESTDIR$folder" 2>/dev/null || true; done
    say "removed what was below $DESTDIR$PREFIX"
}

if [ "${1:-}" = --uninstall ]; then uninstall; exit; fi
binary=${1:?the built binary}
# Units name the binary, and systemd and sed take these characters for others.
for path in "PREFIX=$PREFIX" "BINDIR=$BINDIR"; do
    case $path in
    *[[:space:]\&\|\\%\"\'\$]*) refuse "$path: must be without blanks and without any of & | \\ % \" ' \$" ;;
    esac
done
[ -f "$binary" ] ||
    refuse "$binary is not there: run \`make build\` as a user who has cargo (https://rustup.rs), then this again"
# A binary of `make demo` has no object stores, and of another machine does not run.
parts=$("$binary" version --verbose) || refuse "$binary does not run here: run \`make build\`, then this again"
left_out=$(echo "$parts" | sed -n 's/^left out *//p')
[ "$left_out" = none ] || refuse "$binary is without $left_out: run \`make build\`, then this again"
# Asked before the first file is written.
below=$DESTDIR$BINDIR
while ! [ -e "$below" ]; do below=$(dirname "$below"); done
[ -w "$below" ] || refuse "$below cannot be written: \`sudo make install\` as root, or \`make install PREFIX=\$HOME/.local\`"
newer=$(find "$here/Cargo.lock" "$here/crates" -newer "$binary" \( -name '*.rs' -o -name 'Cargo.*' \) 2>/dev/null | head -n 1)
[ -z "$newer" ] || say "$binary is older than ${newer#"$here/"}: \`make build\` builds it anew" >&2
list=$(mktemp)
made=$(mktemp)
pages=$(mktemp -d)
trap 'rm -rf "$list" "$made" "$pages"' EXIT

[ -z "$DESTDIR" ] || mkdir -p "$DESTDIR"
put 755 "$BINDIR/forerun" < "$binary"
# Its symbols are for those who build it, and most of its bytes.
if [ -z "${KEEP_SYMBOLS:-}" ]; then
    strip "$DESTDIR$BINDIR/forerun" 2>/dev/null || say "strip is missing: the binary keeps its symbols"
fi

"$binary" man --output "$pages"
for page in "$pages"/*; do
    name=${page##*/}
    put 644 "$MANDIR/man${name##*.}/$name" < "$page"
done
put_output "$BASHDIR/forerun" "$binary" completions bash
put_output "$ZSHDIR/_forerun" "$binary" completions zsh
put_output "$FISHDIR/forerun.fish" "$binary" completions fish
unit forerun-mount.service
unit forerun@.service
unit forerun-watch.service
# Pages under their paths in the repository, so that the links of README hold.
texts=$(cd "$here" && echo README.md LICENSE-* CHANGELOG.md docs/*.md docs/*.svg docs/design/*.md python/README.md)
for text in $texts; do
    put 644 "$DOCDIR/$text" < "$here/$text"
done
for text in forerun-dashboard.json forerun.rules.yml; do
    put 644 "$DOCDIR/$text" < "$here/packaging/monitoring/$text"
done
put 644 "$DOCDIR/fast.conf" < "$here/packaging/systemd/example.conf"

if folder "$SBINDIR" 2>/dev/null && [ -w "$DESTDIR$SBINDIR" ]; then
    ln -sfn "$BINDIR/forerun" "$DESTDIR$SBINDIR/mount.forerun"
    echo "$SBINDIR/mount.forerun" >> "$list"
else
    say "NOT INSTALLED: $DESTDIR$SBINDIR/mount.forerun, because $DESTDIR$SBINDIR cannot be written." >&2
    say "fstab and 'mount -t forerun' need it; 'forerun mount' does not." >&2
fi
count=$(grep -vc '/$' "$list")
# Files and folders of an installation before this one go with it.
[ ! -f "$DESTDIR$MANIFEST" ] || cat "$DESTDIR$MANIFEST" >> "$list"
sort -u "$list" > "$DESTDIR$MANIFEST"
chmod 644 "$DESTDIR$MANIFEST"
say "$DESTDIR$BINDIR/forerun and $((count - 1)) more files; 'make uninstall' removes them"
case :$PATH:$DESTDIR in
*:"$BINDIR":*) ;;
*:) say "$BINDIR is not on the PATH of this shell" ;;
esac
