#!/bin/sh
# Makes the tarball and the Debian package, and tries both.
#
#   packaging/package.sh OUT [BINARY]
#
# Without BINARY it builds one: stripped, and linked statically with glibc where that works, so that
# it runs on any Linux of the same processor. Needs cargo; dpkg-deb for the .deb, root and overlayfs
# for the trial. What is missing is said aloud and left out.
set -eu
# Users enter the folders of a package, whoever makes it.
umask 022

here=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?the folder for the packages}
binary=${2:-}
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$here/Cargo.toml")
machine=$(uname -m)
# A package must not be larger: what is downloaded first decides whether anything else is.
BYTES_MAX=10000000

say() { echo "package: $*"; }
loud() { echo "package: NOT DONE: $*" >&2; }

# A static binary needs the libraries for it (libc.a), which not every system has.
build() {
    target=$(rustc -vV | sed -n 's/^host: //p')
    folder=${CARGO_TARGET_DIR:-$here/target}/package
    say "building a static binary for $target"
    if (cd "$here" && RUSTFLAGS="-C target-feature=+crt-static" CARGO_TARGET_DIR="$folder" \
        ${CARGO:-cargo} build --locked --package forerun --profile dist --target "$target") &&
        "$folder/$target/dist/forerun" --version > /dev/null; then
        binary=$folder/$target/dist/forerun
        return
    fi
    loud "a static binary: this toolchain cannot link glibc statically; a dynamic one is packed"
    (cd "$here" && CARGO_TARGET_DIR="$folder" \
        ${CARGO:-cargo} build --locked --package forerun --profile dist)
    binary=$folder/dist/forerun
}

check_size() {
    bytes=$(wc -c < "$1")
    if [ "$bytes" -gt "$BYTES_MAX" ]; then
        say "$1 has $bytes bytes, more than $BYTES_MAX" >&2
        exit 1
    fi
    say "$1, $bytes bytes"
}

tarball() {
    name=forerun-$version-$machine-linux
    PREFIX=/usr/local SBINDIR=/sbin DESTDIR=$stage/tar "$here/packaging/install.sh" "$binary"
    mv "$stage/tar/usr/local" "$stage/$name"
    rm -f "$stage/$name/share/doc/forerun/manifest"
    cp "$here/packaging/INSTALL" "$stage/$name/"
    tar -C "$stage" --owner=0 --group=0 --sort=name -czf "$out/$name.tar.gz" "$name"
    check_size "$out/$name.tar.gz"
}

deb() {
    if ! command -v dpkg-deb > /dev/null; then
        loud "the .deb: dpkg-deb is missing"
        return
    fi
    architecture=$(dpkg --print-architecture)
    root=$stage/deb
    PREFIX=/usr SBINDIR=/usr/sbin DESTDIR=$root "$here/packaging/install.sh" "$binary"
    rm -f "$root/usr/share/doc/forerun/manifest" "$root"/usr/share/doc/forerun/LICENSE-*
    cp "$here/packaging/debian/copyright" "$root/usr/share/doc/forerun/copyright"
    find "$root/usr/share/man" -type f -exec gzip -9n {} +
    gzip -9n "$root/usr/share/doc/forerun/CHANGELOG.md"
    mkdir -p "$root/DEBIAN"
    depends=
    if ldd "$binary" 2> /dev/null | grep -q "=>"; then
        # Of a dynamic binary the newest symbols it asks for.
        libc=$(grep -ao 'GLIBC_2\.[0-9]*' "$binary" | sort -Vu | tail -1 | sed 's/GLIBC_//')
        depends="Depends: libc6 (>= $libc), libgcc-s1"
    fi
    sed -e "s|@VERSION@|$version|; s|@ARCHITECTURE@|$architecture|; s|@DEPENDS@|$depends|" \
        -e "s|@KIB@|$(du -sk "$root/usr" | cut -f1)|" -e '/^$/d' \
        "$here/packaging/debian/control.in" > "$root/DEBIAN/control"
    (cd "$root" && find usr -type f -exec md5sum {} +) > "$root/DEBIAN/md5sums"
    deb=$out/forerun_${version}_$architecture.deb
    dpkg-deb --root-owner-group --build "$root" "$deb" > /dev/null
    check_size "$deb"
}

[ -n "$binary" ] || build
mkdir -p "$out"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
# Those of other versions stay; of this one a .deb goes even where none is made: it would be that of an older binary.
set -- "$out/forerun-$version-$machine-linux.tar.gz"
if command -v dpkg-deb > /dev/null; then
    set -- "$@" "$out/forerun_${version}_$(dpkg --print-architecture).deb"
fi
rm -f "$@" "$out/forerun_${version}_"*.deb
tarball
deb
for package in "$@"; do
    [ -e "$package" ] || continue
    "$here/packaging/try.sh" "$package"
done
