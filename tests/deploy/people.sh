# shellcheck shell=sh
# people.sh: sourced inside a system: its users, its daemons' keys, its loopback.
useradd --create-home --shell /bin/bash alice
useradd --create-home --shell /bin/bash bob
echo 'alice ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/alice
echo 'Defaults !fqdn' >/etc/sudoers.d/names
hostname=$(cat /proc/sys/kernel/hostname)
printf '127.0.0.1 localhost %s\n' "$hostname" >/etc/hosts
ip link set lo up
mkdir -p /run/sshd
ssh-keygen -q -t ed25519 -N '' -f /root/key
install -d -m 700 -o alice -g alice /home/alice/.ssh
install -m 600 -o alice -g alice /root/key.pub /home/alice/.ssh/authorized_keys
# Where sudo, sshd and su look for it, with the simulated driver to be found by every program.
cp -P /work/simcuda/libcuda.so* /work/simcuda/libnvidia-ml.so* /usr/lib/x86_64-linux-gnu/
ldconfig
