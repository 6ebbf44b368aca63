package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// tree makes a directory that looks like a hierarchy, as far as files go.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestHierarchies(t *testing.T) {
	for _, c := range []struct {
		name, mounts, self string
		want               []hierarchy
	}{
		{
			"v2 in a service",
			"29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
			"0::/system.slice/cox.service\n",
			[]hierarchy{{unified: true, root: "/sys/fs/cgroup", own: "/sys/fs/cgroup/system.slice/cox.service"}},
		},
		{
			"v1 with v2 beside it",
			"30 29 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
				"31 29 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
				"32 29 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n" +
				"33 29 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			"4:memory:/user\n3:cpu,cpuacct:/a\n1:name=systemd:/x\n0::/\n",
			[]hierarchy{
				{controllers: []string{"memory"}, root: "/sys/fs/cgroup/memory", own: "/sys/fs/cgroup/memory/user"},
				{controllers: []string{"cpu", "cpuacct"}, root: "/sys/fs/cgroup/cpu,cpuacct", own: "/sys/fs/cgroup/cpu,cpuacct/a"},
				{controllers: []string{"name=systemd"}, root: "/sys/fs/cgroup/systemd", own: "/sys/fs/cgroup/systemd/x"},
				{unified: true, root: "/sys/fs/cgroup/unified", own: "/sys/fs/cgroup/unified"},
			},
		},
		{
			"a container that is shown its own part",
			"29 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
			"0::/docker/abc/sub\n",
			[]hierarchy{{unified: true, root: "/sys/fs/cgroup", own: "/sys/fs/cgroup/sub"}},
		},
		{
			"a container whose part is not shown",
			"29 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
			"0::/../other\n",
			[]hierarchy{{unified: true, root: "/sys/fs/cgroup", own: "/sys/fs/cgroup"}},
		},
		{"none", "21 1 0:20 / /proc rw - proc proc rw\n", "", nil},
	} {
		for i := range c.want {
			if c.want[i].unified {
				c.want[i].controllers = nil
			}
		}
		if got := parseHierarchies(c.mounts, c.self); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%+v\nwant\n%+v", c.name, got, c.want)
		}
	}
}

func TestFind(t *testing.T) {
	if b, notes := findBase(nil); b.Kills() || len(notes) != 1 || !strings.Contains(notes[0], "not mounted") {
		t.Errorf("nothing mounted: %+v %q", b, notes)
	}
	missing := hierarchy{unified: true, root: "/no/such", own: "/no/such"}
	if b, notes := findBase([]hierarchy{missing}); b.Kills() || len(notes) != 1 || !strings.Contains(notes[0], "not writable") {
		t.Errorf("not writable: %+v %q", b, notes)
	}
	// v2 kills; in plain files it looks as if it limited nothing.
	bare := tree(t)
	if b, notes := findBase([]hierarchy{{unified: true, root: bare, own: bare}}); !b.Kills() || b.Memory != "" || !strings.Contains(notes[0], "memory is not limited") {
		t.Errorf("v2 without controllers: %+v %q", b, notes)
	}
	// v1 beside v2: each for what it can do.
	mem, pids := tree(t), tree(t)
	b, _ := findBase([]hierarchy{
		{controllers: []string{"memory"}, root: mem, own: mem},
		{controllers: []string{"pids"}, root: pids, own: pids},
		{unified: true, root: bare, own: bare},
	})
	if b.Unified != bare || b.Memory != mem || b.PIDs != pids {
		t.Errorf("v1 and v2: %+v", b)
	}
}

func TestLimitsAreWritten(t *testing.T) {
	dir := t.TempDir()
	g := &Group{unified: dir, memory: dir, cpu: dir, pids: dir}
	for _, f := range []string{"memory.max", "memory.swap.max", "cpu.weight", "pids.max"} {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.setLimits(Limits{Memory: 1 << 30, CPU: 2000, PIDs: 4096}); err != nil {
		t.Fatal(err)
	}
	one := t.TempDir()
	v1 := &Group{memory: one, cpu: one, pids: one, unified: dir}
	for _, f := range []string{"memory.limit_in_bytes", "cpu.shares", "pids.max"} {
		if err := os.WriteFile(filepath.Join(one, f), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := v1.setLimits(Limits{Memory: 1 << 20, CPU: 500, PIDs: 64}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "memory.max"): "1073741824", filepath.Join(dir, "memory.swap.max"): "0", filepath.Join(dir, "cpu.weight"): "200",
		filepath.Join(one, "memory.limit_in_bytes"): "1048576", filepath.Join(one, "cpu.shares"): "512",
		filepath.Join(dir, "pids.max"): "4096", filepath.Join(one, "pids.max"): "64",
	} {
		if b, err := os.ReadFile(name); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v; want %s", name, b, err, want)
		}
	}
}

func TestOOMKills(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"memory.events":      "low 0\nmax 12\noom 3\noom_kill 2\n",
		"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for want, g := range map[int]*Group{2: {unified: dir, memory: dir}, 5: {memory: dir}, 0: {}} {
		if n, err := g.OOMKills(); err != nil || n != want {
			t.Errorf("%d, %v; want %d", n, err, want)
		}
	}
}

func TestGroupThatIsNotThere(t *testing.T) {
	gone := Base{Unified: "/no/such", Memory: "/no/such", PIDs: "/nor/this"}.Group("x")
	if pids, err := gone.Procs(); err != nil || len(pids) != 0 {
		t.Errorf("it has %v, %v", pids, err)
	}
	if err := errors.Join(gone.Kill(), gone.Remove()); err != nil {
		t.Error(err)
	}
}

// A real group holds, kills and proves; whatever hierarchies there are.
func TestRealGroup(t *testing.T) {
	all, notes := Find()
	if !all.Kills() {
		t.Skip(notes)
	}
	for name, b := range map[string]Base{
		"all":       all,
		"v2 only":   {Unified: all.Unified},
		"v1 pids":   {PIDs: all.PIDs},
		"v1 memory": {Memory: all.Memory},
	} {
		t.Run(name, func(t *testing.T) {
			if !b.Kills() || name == "v1 memory" && b.Memory == all.Unified {
				t.Skip("not here")
			}
			g, err := b.Create("cox.test."+strconv.Itoa(os.Getpid()), Limits{Memory: 1 << 28, CPU: 1000})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := g.Remove(); err != nil {
					t.Error(err)
				}
			})
			cmd := exec.Command("sh", "-c", "echo; exec sleep 600")
			dir, err := g.OpenUnified()
			if err != nil {
				t.Fatal(err)
			}
			if dir != nil {
				cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
				defer dir.Close()
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if err := g.Thread(cmd.Process.Pid); err != nil { // its only thread
				t.Fatal(err)
			}
			if _, err := out.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if pids, err := g.Procs(); err != nil || !slices.Equal(pids, []int{cmd.Process.Pid}) {
				t.Errorf("%v, %v; want %d", pids, err, cmd.Process.Pid)
			}
			if err := b.Group("cox.test." + strconv.Itoa(os.Getpid())).Kill(); err != nil {
				t.Error(err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("it was not killed")
			}
			if pids, err := g.Procs(); err != nil || len(pids) != 0 {
				t.Errorf("%v, %v; want none", pids, err)
			}
		})
	}
}
