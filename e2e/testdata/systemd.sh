#!/bin/bash
# Runs systemd as root's user manager until a unit ends it, in separate namespaces and control groups, with $1/var as
# /var/lib, and $1/usr and $1/etc overlaid on the system's. Exit code 77 if that is not allowed.
set -euo pipefail
groups=/sys/fs/cgroup mounted=(-t cgroup2 none)
if [ -d $groups/systemd ]; then
  groups=$groups/systemd mounted=(-t cgroup -o none,name=systemd none)
fi
own=$groups/tsimport-e2e-$$
if ! { mkdir "$own" && unshare --mount --cgroup --pid --fork true; }; then
  exit 77
fi
trap 'find "$own" -depth -type d -exec rmdir {} +' EXIT
(
  echo $BASHPID > "$own/cgroup.procs"
  exec unshare --mount --cgroup --pid --fork --mount-proc --kill-child bash -euc '
    for name in usr etc; do
      mkdir -p "$1/$name.work"
      mount -t overlay -o "lowerdir=/$name,upperdir=$1/$name,workdir=$1/$name.work" none /$name || exit 77
    done
    mount --bind "$1/var" /var/lib
    mount -t tmpfs none /run
    mkdir -p -m 700 /run/systemd/system /run/user
    mount -t tmpfs none /sys/fs/cgroup
    mkdir -p "$2"
    mount "${@:3}" "$2"
    XDG_RUNTIME_DIR=/run/user XDG_CONFIG_HOME=/var/lib HOME=/root /usr/lib/systemd/systemd --user < /dev/null
    exit # systemd must not be process 1, which is that of the system
  ' - "$1" "$groups" "${mounted[@]}"
)
