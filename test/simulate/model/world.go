package model

import "slices"

// What truly happens, whoever knows it.

func (f Now) tellModel(m *Model) { m.now = f.At }

func (f Jumped) tellModel(m *Model) { m.jumped = true }

func (f Machine) tellModel(m *Model) {
	n := m.nodes[f.Node.Name]
	if n == nil {
		n = &node{}
		m.nodes[f.Node.Name] = n
	}
	n.Node = f.Node
}

func (f Launched) tellModel(m *Model) {
	a := m.attemptOf(f.Ref)
	m.mayLaunch(a, &f)
	a.ghost = a.ghost || a.lost && a.begun
	a.launched, a.failed, a.begun, a.lost, a.paused = true, false, false, false, false
	a.began = nil
	if a.claims == nil {
		a.claims = f.Claims
	}
	a.lives = a.nodeNames()
	m.keepAttempt(a)
}

// mayLaunch checks that the journal has what a launch begins.
func (m *Model) mayLaunch(a *attempt, f *Launched) {
	switch {
	case !a.journaled:
		m.addBroken(Ledger, "journal-first", "attempt %s of job %d is launched on %s, and the journal grants no such attempt", f.Ref, f.Job, formatClaims(f.Claims))
	case a.freed:
		m.addBroken(Ledger, "stale", "%s is launched after the journal said that it had ended", a.fullName())
	case a.job.id != f.Job:
		m.addBroken(Ledger, "stale", "%s is launched as one of job %d", a.fullName(), f.Job)
	case a.adds == nil && missingTasks(a.job.spec, f.Claims) != "":
		m.addBroken(Whole, "gang", "%s is launched with %s of its gang, on %s", a.fullName(), missingTasks(a.job.spec, f.Claims), formatClaims(f.Claims))
	case !sameClaims(a.claims, f.Claims):
		m.addBroken(Ledger, "books", "%s is launched on %s with other claims than the journal grants on %s", a.fullName(), formatClaims(f.Claims), formatClaims(a.claims))
	case a.launched && !a.lost:
		m.addBroken(Ledger, "twice", "%s is launched a second time", a.fullName())
	}
	if a.job == nil {
		return
	}
	for _, b := range m.live {
		if b.gangAttempt() != a.gangAttempt() && b.job == a.job && len(b.lives) > 0 && !b.ghost {
			m.addBroken(Ledger, "twice", "%s is launched while attempt %s lives on %s", a.fullName(), b.ref, joinNames(b.lives))
		}
	}
}

func (f Began) tellModel(m *Model) {
	a := m.attemptOf(f.Ref)
	switch {
	case a.failed:
		m.addBroken(Whole, "undone", "%s begins on %s after its launch had failed", a.fullName(), f.Node)
	case !a.launched:
		m.addBroken(Ledger, "journal-first", "%s begins on %s without a launch", a.fullName(), f.Node)
	case slices.Contains(a.began, f.Node):
		m.addBroken(Ledger, "twice", "%s begins on %s a second time", a.fullName(), f.Node)
	case !a.isHeld():
		m.addBroken(Ledger, "stale", "%s begins on %s and the journal does not hold it", a.fullName(), f.Node)
	case !slices.Contains(a.nodeNames(), f.Node):
		m.addBroken(Ledger, "books", "%s begins on %s, which it does not hold", a.fullName(), f.Node)
	}
	a.began = append(a.began, f.Node)
	if !slices.Contains(a.lives, f.Node) {
		a.lives = append(a.lives, f.Node)
	}
	m.keepAttempt(a)
	m.checkCrowded(a, "begins", f.Node)
}

// checkCrowded looks for more work on a node than it carries.
func (m *Model) checkCrowded(a *attempt, does, name string) {
	n := m.nodes[name]
	if n == nil {
		return
	}
	l := m.runningLoad(name)
	if over := l.overload(n); over != "" {
		m.addBroken(Ledger, "capacity", "%s %s on %s, where %s", a.fullName(), does, name, over)
	}
}

func (f Paused) tellModel(m *Model) {
	a := m.attemptOf(f.Ref)
	a.paused = f.On
	if f.On || a.astray {
		return
	}
	for _, name := range a.lives {
		m.checkCrowded(a, "goes on", name)
	}
}

func (f Barrier) tellModel(m *Model) {
	a := m.attemptOf(f.Ref)
	a.begun = true
	for _, name := range a.nodeNames() {
		if !slices.Contains(a.began, name) {
			m.addBroken(Whole, "gang", "%s runs on %s and not on %s", a.fullName(), joinNames(a.began), name)
		}
	}
	if a.job == nil || a.adds != nil {
		return
	}
	if lack := missingTasks(a.job.spec, a.claims); lack != "" {
		m.addBroken(Whole, "gang", "%s runs with %s of its gang", a.fullName(), lack)
	}
}

func (f Failed) tellModel(m *Model) { m.attemptOf(f.Ref).failed = true }

func (f Vanished) tellModel(m *Model) {
	a := m.attemptOf(f.Ref)
	if f.Node == "" {
		a.lives = nil
	} else {
		a.lives = slices.DeleteFunc(slices.Clone(a.lives), func(n string) bool { return n == f.Node })
	}
	m.dropFinished(a)
}

func (f Amnesia) tellModel(m *Model) {
	for _, a := range m.claims {
		a.lost = true
	}
}
