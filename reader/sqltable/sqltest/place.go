package sqltest

import (
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// Place is where a test's server runs. If the test runs as root, the server runs as another user, as servers require.
type Place struct {
	testing.TB
	Dir  string
	Port int // port on the loopback interface
	as   *syscall.SysProcAttr
	uid  int
	gid  int
}

// NewPlace creates a folder and finds a port. name is the server's user. After the test it calls stop and cleans up.
func NewPlace(t testing.TB, name string, stop func()) *Place {
	t.Helper()
	dir, err := os.MkdirTemp("", name+"test")
	conformance.Must(t, err)
	p := &Place{TB: t, Dir: dir}
	t.Cleanup(func() {
		stop()
		conformance.Must(t, os.RemoveAll(dir))
	})
	if os.Getuid() == 0 {
		u, err := user.Lookup(name)
		conformance.Must(t, err)
		p.uid, _ = strconv.Atoi(u.Uid)
		p.gid, _ = strconv.Atoi(u.Gid)
		p.as = userOf(p.uid, p.gid)
		p.own(dir)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	conformance.Must(t, err)
	p.Port = free.Addr().(*net.TCPAddr).Port
	conformance.Must(t, free.Close())
	return p
}

// Data returns the folder for the server's data.
func (p *Place) Data() string { return filepath.Join(p.Dir, "data") }

// Command returns a command that runs as the server's user.
func (p *Place) Command(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.SysProcAttr, c.Dir = p.as, p.Dir
	return c
}

// Run runs a command as the server's user. The test fails if the command does.
func (p *Place) Run(name string, args ...string) {
	p.Helper()
	if out, err := p.Command(name, args...).CombinedOutput(); err != nil {
		log, _ := os.ReadFile(filepath.Join(p.Dir, "log"))
		p.Fatalf("%s: %v\n%s%s", name, err, out, log)
	}
}

// Own copies a file; only the server's user can read the copy.
func (p *Place) Own(file, copied string) {
	p.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(copied, text, 0o600)
	}
	conformance.Must(p, err)
	p.own(copied)
}

func (p *Place) own(path string) {
	p.Helper()
	if p.as == nil {
		return
	}
	conformance.Must(p, os.Chown(path, p.uid, p.gid))
}
