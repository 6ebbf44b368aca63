package notify

import "slices"

// userTurn is what one user has of the queue and of the workers, with Config.PerUser: a user whose
// receiver does not answer holds one worker, and leaves room in the queue.
type userTurn struct {
	waiting int        // in the queue and in aside
	sending bool       // a worker sends this user's messages, one after the other
	aside   []occasion // that came out of the queue meanwhile
}

// countWaiting counts a message in, of which a user has no more than Config.PerUser. n.mu is held.
func (n *Notifier) countWaiting(o *occasion) bool {
	if n.config.PerUser <= 0 {
		return true
	}
	u := n.users[o.job.Spec.Owner.User]
	if u == nil {
		u = &userTurn{}
		n.users[o.job.Spec.Owner.User] = u
	}
	if u.waiting >= n.config.PerUser {
		return false
	}
	u.waiting++
	return true
}

// uncountWaiting counts a message out. n.mu is held.
func (n *Notifier) uncountWaiting(o *occasion) {
	name := o.job.Spec.Owner.User
	if u := n.users[name]; u != nil {
		if u.waiting--; u.waiting == 0 && !u.sending {
			delete(n.users, name)
		}
	}
}

// takeTurn reports whether the worker that took a message from the queue sends it; false: the worker that
// sends another one of this user does.
func (n *Notifier) takeTurn(o *occasion) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	u := n.users[o.job.Spec.Owner.User]
	switch {
	case u == nil:
		return true
	case u.sending:
		u.aside = append(u.aside, *o)
		return false
	}
	u.sending = true
	u.waiting--
	return true
}

// nextInTurn makes o the next message of its user that was put aside; false: there is none.
func (n *Notifier) nextInTurn(o *occasion) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	name := o.job.Spec.Owner.User
	u := n.users[name]
	switch {
	case u == nil:
		return false
	case len(u.aside) > 0:
		*o = u.aside[0]
		u.aside = slices.Delete(u.aside, 0, 1)
		u.waiting--
		return true
	}
	if u.sending = false; u.waiting == 0 {
		delete(n.users, name)
	}
	return false
}
