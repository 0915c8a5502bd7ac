package options

import (
	"bytes"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// machineMemory returns the bytes of memory that this process may use, 0 when nothing says so: what the machine has, or
// the limit of a control group that the process is in. root is the file system's root.
func machineMemory(root fs.FS) int64 {
	least := memTotal(root)
	groups, _ := fs.ReadFile(root, "proc/self/cgroup") // absent where there are none
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // number:controllers:path
		if len(fields) != 3 {
			continue
		}
		switch {
		case fields[1] == "": // version 2
			least = leastLimit(root, "sys/fs/cgroup", fields[2], "memory.max", least)
		case strings.Contains(","+fields[1]+",", ",memory,"):
			least = leastLimit(root, "sys/fs/cgroup/memory", fields[2], "memory.limit_in_bytes", least)
		}
	}
	return least
}

// memTotal reads MemTotal, which is in kibibytes regardless of its unit.
func memTotal(root fs.FS) int64 {
	text, _ := fs.ReadFile(root, "proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

// leastLimit returns the smallest limit of a group and those around it. In a container the group's path may be that of
// the host, of which only the end, or nothing, is there: the walk ends at the mount itself.
func leastLimit(root fs.FS, mount, group, file string, least int64) int64 {
	for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
		text, _ := fs.ReadFile(root, path.Join(mount, dir, file))
		// "max" is not a number.
		if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && n > 0 && (least == 0 || n < least) {
			least = n
		}
		if dir == "/" {
			return least
		}
	}
}
