package peer

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
)

func TestTheKernelNamesTheOtherEnd(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := Of(s)
	if want := (Credentials{int32(os.Getpid()), uint32(os.Getuid()), uint32(os.Getgid())}); err != nil || got != want {
		t.Errorf("%+v, %v; this process is %+v", got, err, want)
	}
}

func TestTCPHasNoCredentials(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := Of(c); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("%v", err)
	}
}
