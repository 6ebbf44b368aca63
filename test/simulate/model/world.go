package model

import "slices"

// What truly happens, whoever knows it.

func (f Now) tell(m *Model) { m.now = f.At }

func (f Jumped) tell(m *Model) { m.jumped = true }

func (f Machine) tell(m *Model) {
	n := m.nodes[f.Node.Name]
	if n == nil {
		n = &node{}
		m.nodes[f.Node.Name] = n
	}
	n.Node = f.Node
}

func (f Launched) tell(m *Model) {
	a := m.of(f.Ref)
	m.mayLaunch(a, &f)
	a.ghost = a.ghost || a.lost && a.begun
	a.launched, a.failed, a.begun, a.lost, a.paused = true, false, false, false, false
	a.began = nil
	if a.claims == nil {
		a.claims = f.Claims
	}
	a.lives = a.nodes()
	m.keep(a)
}

// mayLaunch checks that the journal has what a launch begins.
func (m *Model) mayLaunch(a *attempt, f *Launched) {
	switch {
	case !a.journaled:
		m.broken(Ledger, "journal-first", "attempt %s of job %d is launched on %s, and the journal grants no such attempt", f.Ref, f.Job, places(f.Claims))
	case a.freed:
		m.broken(Ledger, "stale", "%s is launched after the journal said that it had ended", a.title())
	case a.job.id != f.Job:
		m.broken(Ledger, "stale", "%s is launched as one of job %d", a.title(), f.Job)
	case a.adds == nil && short(a.job.spec, f.Claims) != "":
		m.broken(Whole, "gang", "%s is launched with %s of its gang, on %s", a.title(), short(a.job.spec, f.Claims), places(f.Claims))
	case !alike(a.claims, f.Claims):
		m.broken(Ledger, "books", "%s is launched on %s with other claims than the journal grants on %s", a.title(), places(f.Claims), places(a.claims))
	case a.launched && !a.lost:
		m.broken(Ledger, "twice", "%s is launched a second time", a.title())
	}
	if a.job == nil {
		return
	}
	for _, b := range m.live {
		if b.gang() != a.gang() && b.job == a.job && len(b.lives) > 0 && !b.ghost {
			m.broken(Ledger, "twice", "%s is launched while attempt %s lives on %s", a.title(), b.ref, names(b.lives))
		}
	}
}

func (f Began) tell(m *Model) {
	a := m.of(f.Ref)
	switch {
	case a.failed:
		m.broken(Whole, "undone", "%s begins on %s after its launch had failed", a.title(), f.Node)
	case !a.launched:
		m.broken(Ledger, "journal-first", "%s begins on %s without a launch", a.title(), f.Node)
	case slices.Contains(a.began, f.Node):
		m.broken(Ledger, "twice", "%s begins on %s a second time", a.title(), f.Node)
	case !a.present():
		m.broken(Ledger, "stale", "%s begins on %s and the journal does not hold it", a.title(), f.Node)
	case !slices.Contains(a.nodes(), f.Node):
		m.broken(Ledger, "books", "%s begins on %s, which it does not hold", a.title(), f.Node)
	}
	a.began = append(a.began, f.Node)
	if !slices.Contains(a.lives, f.Node) {
		a.lives = append(a.lives, f.Node)
	}
	m.keep(a)
	m.crowds(a, "begins", f.Node)
}

// crowds looks for more work on a node than it carries.
func (m *Model) crowds(a *attempt, does, name string) {
	n := m.nodes[name]
	if n == nil {
		return
	}
	l := m.runs(name)
	if over := l.over(n); over != "" {
		m.broken(Ledger, "capacity", "%s %s on %s, where %s", a.title(), does, name, over)
	}
}

func (f Paused) tell(m *Model) {
	a := m.of(f.Ref)
	a.paused = f.On
	if f.On || a.astray {
		return
	}
	for _, name := range a.lives {
		m.crowds(a, "goes on", name)
	}
}

func (f Barrier) tell(m *Model) {
	a := m.of(f.Ref)
	a.begun = true
	for _, name := range a.nodes() {
		if !slices.Contains(a.began, name) {
			m.broken(Whole, "gang", "%s runs on %s and not on %s", a.title(), names(a.began), name)
		}
	}
	if a.job == nil || a.adds != nil {
		return
	}
	if lack := short(a.job.spec, a.claims); lack != "" {
		m.broken(Whole, "gang", "%s runs with %s of its gang", a.title(), lack)
	}
}

func (f Failed) tell(m *Model) { m.of(f.Ref).failed = true }

func (f Vanished) tell(m *Model) {
	a := m.of(f.Ref)
	if f.Node == "" {
		a.lives = nil
	} else {
		a.lives = slices.DeleteFunc(slices.Clone(a.lives), func(n string) bool { return n == f.Node })
	}
	m.drop(a)
}

func (f Amnesia) tell(m *Model) {
	for _, a := range m.claims {
		a.lost = true
	}
}
