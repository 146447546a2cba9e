#!/bin/sh
# nvml-names.sh NVML_H: every function of an official header that gives a device, or names or numbers GPUs, is hooked
# (shim/hooks.def) or listed with its reason (nvml-untouched.txt). Under the newest header no line of the list is idle.
set -eu
header=$1
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
hooks=$here/../../shim/hooks.def
list=$here/nvml-untouched.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One declaration a line, then those that concern us, by what they take or by their names.
tr '\n' ' ' <"$header" | grep -o 'DECLDIR nvml[A-Za-z0-9_]* *([^)]*)' | sed 's/DECLDIR //; s/ (/(/' | grep -v '^nvmlVgpu' >"$work/all"
grep -E '^nvml[^(]*(HandleBy|HandleFrom|Unit|Count(_v[0-9]+)?\(|GetIndex|MinorNumber|BoardId|BoardPart|ModuleId|MultiGpuBoard|SameBoard|UUID|Serial\(|GetName|Pci(Info)|Pdi|PlatformInfo|Topology|P2PStatus|RunningProcess|MemoryInfo|MemSizeInfo|Mig(Mode|Device)|GpuInstances\(|GpuInstanceById|EventSetWait|Discover|Excluded|HicVersion)|nvmlDevice_t \*|nvmlPciInfo[A-Za-z_0-9]* \*' \
    "$work/all" | sed 's/(.*//' | sort -u >"$work/concerned"
[ "$(wc -l <"$work/concerned")" -gt 40 ] || { echo "$header is not read: it names $(wc -l <"$work/concerned") functions"; exit 1; }

sed -n 's/^NVML_HOOK(\([A-Za-z0-9_]*\),.*/\1/p' "$hooks" | sort -u >"$work/hooked"
grep -v -e '^#' -e '^$' "$list" >"$work/list"
status=0
: >"$work/used"
while read -r name; do
    ! grep -qx "$name" "$work/hooked" || continue
    found=""
    while read -r glob reason; do
        [ -n "$reason" ] || { echo "$list: no reason for $glob"; status=1; }
        # shellcheck disable=SC2254 # a glob it is
        case $name in $glob) found=yes; echo "$glob" >>"$work/used" ;; esac
    done <"$work/list"
    [ -n "$found" ] || { echo "$name gives or names a GPU: hook it, or say in $list why not"; status=1; }
done <"$work/concerned"

if grep -q 'define NVML_API_VERSION *13' "$header"; then
    while read -r glob _; do
        grep -qxF "$glob" "$work/used" || { echo "$list: $glob stands for nothing"; status=1; }
    done <"$work/list"
fi
exit "$status"
