#!/bin/sh
# roots.sh: makes the systems that tests/deploy looks at, each an unpacked Debian, in the cache of fetch-runtimes.sh:
# once, and outside the tree. Their names end in what they were made of, so that a change here makes new ones.
#
#     tests/deploy/roots.sh                makes those that are missing, and says nothing where none is
#     tests/deploy/roots.sh --where NAME   only prints the folder of one: bookworm, bullseye, arm64
#
# Exit status 1: one of them could not be had (as root only, and from a Debian mirror); each is named on stderr.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

# What people use on a machine with GPUs, and what looks closely at processes.
bookworm="sudo openssh-server openssh-client cron python3 perl gdb valgrind libc6-dbg musl hello:i386 iproute2 libcap2-bin
    systemd dbus nodejs openjdk-17-jre-headless gosu"
# The C library of 2020, with what it takes to build the tests for it.
bullseye="libc6-dev libcmocka-dev"

where()
{
    made_of=$(echo $bookworm $bullseye | cksum | cut -d ' ' -f 1)
    echo "$("$here/../fetch-runtimes.sh" --where)/../roots/$1-$made_of"
}

# debian SUITE FOLDER PACKAGE...: a system with these packages, some of them for i386.
debian()
{
    # No daemon is started in a folder that is not a machine.
    # shellcheck disable=SC2016
    debootstrap --variant=minbase "$1" "$2" &&
        printf '#!/bin/sh\nexit 101\n' >"$2/usr/sbin/policy-rc.d" &&
        chmod 755 "$2/usr/sbin/policy-rc.d" &&
        unshare --mount sh -euc '
            mount -t proc proc "$2/proc"
            cd "$2"
            shift 2
            chroot . dpkg --add-architecture i386
            chroot . apt-get -q update
            export DEBIAN_FRONTEND=noninteractive LC_ALL=C
            chroot . apt-get -q -y --no-install-recommends install "$@"
            chroot . apt-get clean' sh "$@"
}

# A folder of headers and libraries is searched from outside, where absolute links lead astray.
relative_links()
{
    find "$1/usr/lib" "$1/usr/lib64" -lname '/*' | while read -r link; do
        ln -snf "$(realpath -m --relative-to="$(dirname "$link")" "$1$(readlink "$link")")" "$link"
    done
}

# The tests' library for arm64; compiler and C library come with the machine's own cross compiler.
arm64()
{
    mkdir -p "$1.apt/lists/partial" "$1.apt/cache/archives/partial" "$1.apt/tree"
    : >"$1.apt/status"
    apt="apt-get -qq -o Dir::State::Lists=$1.apt/lists -o Dir::Cache=$1.apt/cache -o Dir::State::status=$1.apt/status
        -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root"
    (cd "$1.apt" && $apt update && $apt download libcmocka0 libcmocka-dev &&
        for package in *.deb; do dpkg -x "$package" tree; done) && mv -T "$1.apt/tree" "$1"
}

make()
{
    case $1 in
    bookworm) debian bookworm "$2" $bookworm ;;
    bullseye) debian bullseye "$2" $bullseye && relative_links "$2" ;;
    arm64) arm64 "$2" ;;
    esac
}

if [ "${1:-}" = --where ]; then
    where "$2"
    exit 0
fi

status=0
for name in bookworm bullseye arm64; do
    root=$(where $name)
    [ ! -d "$root" ] || continue
    if [ "$(id -u)" -ne 0 ]; then
        echo "Could not make a $name system: that takes root" >&2
        status=1
        continue
    fi
    mkdir -p "$(dirname "$root")"
    work=$(mktemp -d "$(dirname "$root")/.make.XXXXXX")
    echo "Making a $name system" >&2
    # It appears whole or not at all.
    if (make $name "$work/root") >"$work/log" 2>&1 </dev/null && mv -T "$work/root" "$root"; then
        chmod 755 "$root"
    else
        echo "Could not make a $name system:" >&2
        grep -v '^I:' "$work/log" | tail -n 5 >&2
        status=1
    fi
    rm -rf "$work"
done
exit "$status"
