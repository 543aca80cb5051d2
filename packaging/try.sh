#!/bin/sh
# Installs a package in a copy of this system's root and uses it as its users would.
#
#   packaging/try.sh forerun-*.tar.gz | forerun_*.deb | BINARY (installed with packaging/install.sh)
#
# Where TRY_STORE has the address of a server that checks signatures, with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY,
# its object s3://b/k, which has the text "content", is mounted and read, too: by hand, and with the keys as the units have
# them, in a file of variables.
#
# The copy is an overlay in a mount namespace of its own: nothing of the system changes, and nothing
# is left when it ends. Needs root, unshare, overlayfs and /dev/fuse; ends with 77 and a line where
# one is missing, with 1 where the package does not do what it should.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
package=$1

untried() {
    echo "try: NOT TRIED: ${package##*/}: $*" >&2
    exit 77
}

if [ "${2:-}" != inside ]; then
    [ "$(id -u)" = 0 ] || untried "needs root"
    [ -c /dev/fuse ] || untried "needs /dev/fuse"
    command -v unshare > /dev/null || untried "needs unshare"
    package=$(cd "$(dirname "$package")" && pwd)/${package##*/}
    exec unshare --mount --propagation private "$0" "$package" inside
fi

work=$(mktemp -d)
mount -t tmpfs tmpfs "$work"
mkdir "$work/upper" "$work/work" "$work/root" "$work/bare"
root=$work/root
trap 'umount -lR "$work" 2>/dev/null; rmdir "$work"' EXIT
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$root" 2>/dev/null ||
    untried "needs overlayfs"
for folder in dev proc sys; do mount --rbind "/$folder" "$root/$folder"; done
mount -t tmpfs tmpfs "$root/run"
# The repository and the package may be on file systems of their own, which the overlay does not show.
mkdir -p "$root/mnt/forerun" "$root/mnt/source" "$root/mnt/fast" "$root/mnt/package"
mount --bind "$here" "$root/mnt/forerun"
cp "$package" "$root/mnt/package/"
inner=/mnt/package/${package##*/}
head -c 3000000 /dev/urandom > "$root/mnt/source/file"

in_root() { chroot "$root" /usr/bin/env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
fail() {
    echo "try: ${package##*/}: $*" >&2
    exit 1
}

case $package in
*.tar.gz)
    in_root tar xzf "$inner" -C /usr/local --strip-components=1 --exclude=INSTALL
    in_root ln -s /usr/local/bin/forerun /sbin/mount.forerun
    prefix=/usr/local
    remove() { in_root rm -rf /usr/local/bin/forerun /sbin/mount.forerun; }
    ;;
*.deb)
    in_root dpkg -i "$inner" > /dev/null
    prefix=/usr
    remove() { in_root dpkg -r forerun > /dev/null; }
    ;;
*)
    in_root /mnt/forerun/packaging/install.sh "$inner" > /dev/null
    prefix=/usr/local
    remove() { in_root /mnt/forerun/packaging/install.sh --uninstall > /dev/null; }
    ;;
esac

binary=$root$prefix/bin/forerun
[ "$(in_root sh -c 'command -v forerun')" = "$prefix/bin/forerun" ] || fail "forerun is not on the path"
in_root forerun --version | grep -q '^forerun [0-9]' || fail "forerun does not run"
in_root forerun version --verbose | grep -q '^left out *none$' || fail "a part is missing"

# One mount each way, read and taken off.
mounts() {
    what=$1
    shift
    in_root "$@" || fail "$what: cannot mount"
    cmp "$root/mnt/source/file" "$root/mnt/fast/file" || fail "$what: other bytes"
    in_root forerun top --once /mnt/fast | grep -q '/mnt/source on /mnt/fast' || fail "$what: top does not find it"
    in_root forerun umount /mnt/fast || fail "$what: cannot unmount"
}
mounts "forerun mount" forerun mount --memory 16MiB /mnt/source /mnt/fast
mounts "mount -t forerun" mount -t forerun -o memory=16MiB,allow_other /mnt/source /mnt/fast
echo "/mnt/source /mnt/fast forerun memory=16MiB,x-systemd.automount 0 0" > "$root/etc/fstab"
mounts "fstab" mount /mnt/fast
if command -v setpriv > /dev/null; then
    # The rights that the systemd units leave it, and the arguments that they give it.
    rights=$(sed -n 's/^CapabilityBoundingSet=//p' "$here/packaging/systemd/service.in" |
        tr 'A-Z ' 'a-z,' | sed 's/cap_/+/g')
    mounts "the units' rights" setpriv --bounding-set "-all,$rights" --no-new-privs \
        forerun mount --allow-other --memory 16MiB /mnt/source /mnt/fast
fi

# The object of a store, by a variable for each key, or by a file of them.
reads_store() {
    what=$1
    shift
    in_root "$@" || fail "$what: cannot mount"
    [ "$(cat "$root/mnt/fast/k")" = content ] || fail "$what: other bytes"
    in_root forerun umount /mnt/fast || fail "$what: cannot unmount"
}
if [ -n "${TRY_STORE:-}" ]; then
    reads_store "mount s3://" env AWS_ENDPOINT_URL="$TRY_STORE" forerun mount --memory 16MiB s3://b /mnt/fast
    mkdir -p "$root/etc/forerun"
    unit=$root$prefix/lib/systemd/system/forerun-mount.service
    file=$(sed -n 's/^EnvironmentFile=//p' "$unit")
    printf '%s\n' SOURCE=s3://b MOUNTPOINT=/mnt/fast 'OPTIONS=--allow-other --memory 16MiB' \
        "AWS_ENDPOINT_URL=$TRY_STORE" "AWS_ACCESS_KEY_ID=$AWS_ACCESS_KEY_ID" \
        "AWS_SECRET_ACCESS_KEY=$AWS_SECRET_ACCESS_KEY" > "$root$file"
    # As systemd runs it: its variables alone, and words of $OPTIONS apart.
    command=$(sed -n 's/^ExecStart=//p' "$unit")
    reads_store "a unit of s3://" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c "set -a; . $file; set +a; $command"
    # Of fstab and `mount -t`, whose programs have no variables: keys in the file of the home that the list of users has.
    keys=$root$(sed -n 's/^root:.*:\([^:]*\):[^:]*$/\1/p' "$root/etc/passwd")/.aws
    mkdir -p "$keys"
    printf '[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n' \
        "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" > "$keys/credentials"
    printf '[default]\nendpoint_url = %s\n' "$TRY_STORE" > "$keys/config"
    echo "s3://b /mnt/fast forerun memory=16MiB,_netdev 0 0" > "$root/etc/fstab"
    reads_store "fstab of s3://" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin mount /mnt/fast
    stores=", a signed store by hand, unit and fstab"
fi

page=$(find "$root$prefix/share/man/man1" -name 'forerun-mount.1*') || fail "no man page"
[ -s "$page" ] || fail "no man page"
[ -n "$(find "$root$prefix/share/man/man8" -name 'mount.forerun.8*')" ] || fail "no page for mount.forerun"
in_root bash -c ". $prefix/share/bash-completion/completions/forerun && complete -p forerun" > /dev/null ||
    fail "the completions of bash do not load"
for file in share/zsh/site-functions/_forerun share/fish/vendor_completions.d/forerun.fish; do
    grep -q mount "$root$prefix/$file" || fail "$file is not there"
done
for name in forerun-mount.service forerun@.service; do
    unit=$root$prefix/lib/systemd/system/$name
    grep -q "^ExecStart=$prefix/bin/forerun mount" "$unit" || fail "$name does not run the binary"
    if command -v systemd-analyze > /dev/null; then
        said=$(in_root systemd-analyze verify --man=no "$prefix/lib/systemd/system/$name" 2>&1) ||
            fail "$name: $said"
        ! echo "$said" | grep "$name" || fail "$name: $said"
    fi
done

# A static binary needs no other file, so it works where there is none.
if ! ldd "$binary" 2> /dev/null | grep -q "=>"; then
    bare=$work/bare
    mkdir "$bare/dev" "$bare/proc" "$bare/source" "$bare/fast"
    mount --rbind /dev "$bare/dev"
    mount -t proc proc "$bare/proc"
    cp "$binary" "$bare/forerun"
    cp "$root/mnt/source/file" "$bare/source/"
    chroot "$bare" /forerun mount --memory 16MiB /source /fast || fail "does not mount in an empty root"
    cmp "$bare/source/file" "$bare/fast/file" || fail "other bytes in an empty root"
    chroot "$bare" /forerun umount /fast || fail "does not unmount in an empty root"
    static=", in an empty root too"
fi

remove
[ ! -e "$binary" ] || fail "cannot be removed"
echo "try: ${package##*/}: installs, mounts${stores:-}, unmounts and is removed${static:-}"
