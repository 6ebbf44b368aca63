package lab

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Break breaks something of a cluster, calls meanwhile, and has it whole again, after some time that
// rnd draws.
type Break func(t testing.TB, rnd *rand.Rand, meanwhile func())

// Breaks are what happens to clusters, by name: their processes are killed or hang, nodes hang, or lose
// their power, which is said before. Not two at once.
func (l *Lab) Breaks(loses func(node string)) map[string]Break {
	node := func(rnd *rand.Rand) string { return l.Nodes[rnd.IntN(len(l.Nodes))] }
	killed := func(name func(*rand.Rand) string) Break {
		return func(t testing.TB, rnd *rand.Rand, meanwhile func()) {
			name := name(rnd)
			l.Kill(t, name)
			meanwhile()
			Pause(rnd, 2*time.Second)
			l.Restart(t, name)
		}
	}
	all := map[string]Break{}
	is := func(name string) func(*rand.Rand) string { return func(*rand.Rand) string { return name } }
	for name, b := range map[string]Break{
		"apiserver":          killed(is("apiserver")),
		"etcd":               killed(is("etcd")),
		"controller-manager": killed(is("controller-manager")),
		"kubelet":            killed(func(rnd *rand.Rand) string { return "kubelet." + node(rnd) }),
		"containerd":         killed(func(rnd *rand.Rand) string { return "containerd." + node(rnd) }),
		"frozen apiserver": func(t testing.TB, rnd *rand.Rand, meanwhile func()) {
			l.Freeze(t, "apiserver")
			meanwhile()
			Pause(rnd, 3*time.Second)
			l.Thaw(t, "apiserver")
		},
		"frozen node": func(t testing.TB, rnd *rand.Rand, meanwhile func()) {
			n := node(rnd)
			l.FreezeNode(t, n)
			meanwhile()
			Pause(rnd, 5*time.Second)
			l.ThawNode(t, n)
		},
		"lost power": func(t testing.TB, rnd *rand.Rand, meanwhile func()) {
			n := node(rnd)
			loses(n)
			l.Crash(t, n)
			meanwhile()
			l.Boot(t, n)
		},
	} {
		all[name] = func(t testing.TB, rnd *rand.Rand, meanwhile func()) {
			b(t, rnd, meanwhile)
			l.restartEnded(t)
		}
	}
	return all
}

// restartEnded starts what has ended by itself, as a kubelet does with its static pods: a
// controller-manager ends if there is no API server while it begins.
func (l *Lab) restartEnded(t testing.TB) {
	l.mu.Lock()
	var ended []string
	for name, d := range l.daemons {
		select {
		case <-d.over:
			ended = append(ended, name)
		default:
		}
	}
	l.mu.Unlock()
	slices.Sort(ended)
	for _, name := range ended {
		t.Logf("%s had ended by itself", name)
		l.Restart(t, name)
	}
}

// Pause lets some time pass, less than most, in whole milliseconds: it spreads what happens.
func Pause(rnd *rand.Rand, most time.Duration) {
	time.Sleep(time.Duration(rnd.IntN(int(most/time.Millisecond))) * time.Millisecond)
}
