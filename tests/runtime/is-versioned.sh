#!/bin/sh
# is-versioned.sh PROGRAM NAME: PROGRAM's reference to NAME carries a symbol version. The runtime test of that
# program then shows that such a reference binds to the shim's unversioned export all the same.
readelf --wide --dyn-syms "$1" | grep -E " UND $2@[^ ]+"
