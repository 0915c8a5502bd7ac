#!/bin/bash
# Runs the systemd of a user on the units in $XDG_CONFIG_HOME until one of them ends it, in namespaces and control groups of its own. Exit code 77
# where that is not allowed.
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
    mount -t tmpfs none /run
    mkdir -p -m 700 /run/systemd/system /run/user
    mount -t tmpfs none /sys/fs/cgroup
    mkdir -p "$1"
    mount "${@:2}" "$1"
    XDG_RUNTIME_DIR=/run/user /usr/lib/systemd/systemd --user --log-target=console < /dev/null
    exit # systemd must not be process 1, which is the system'"'"'s
  ' - "$groups" "${mounted[@]}"
)
