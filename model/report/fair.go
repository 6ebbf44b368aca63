package report

// fairRows sets what was used against shares, in the order of the tree. What an account used is what
// its users and the accounts below it used.
func (b *Builder) fairRows() []Row {
	own := map[group]*sums{} // of accounts and of users in accounts
	for g, s := range b.groups {
		account := group{account: g.account}
		if own[account] == nil {
			own[account] = &sums{}
		}
		own[account].addHeld(s)
		if g.user != "" {
			own[g] = s
		}
	}
	rows, part, above := []Row{}, map[string]float64{}, map[string]string{}
	used := map[group]*sums{}
	for i := range b.q.Shares {
		x := &b.q.Shares[i]
		if x.User == "" {
			above[x.Account] = x.Parent
		}
	}
	for g, s := range own {
		if g.user != "" {
			used[g] = s
			continue
		}
		at := g.account
		for range len(above) + 1 {
			k := group{account: at}
			if used[k] == nil {
				used[k] = &sums{}
			}
			used[k].addHeld(s)
			if above[at] == "" {
				break
			}
			at = above[at]
		}
	}
	byUser := false
	for _, k := range b.q.By {
		byUser = byUser || k == ByUser
	}
	for i := range b.q.Shares {
		x := &b.q.Shares[i]
		whole := 1.0
		if x.User != "" {
			whole = part[x.Account]
		} else if x.Parent != "" {
			whole = part[x.Parent]
		}
		mine := whole * x.Norm
		if x.Depth == 0 {
			mine = 1
		}
		if x.User == "" {
			part[x.Account] = mine
		} else if !byUser {
			continue
		}
		g := group{account: x.Account, user: x.User}
		s := used[g]
		if s == nil {
			s = &sums{}
		}
		delete(used, g)
		r := Row{Account: x.Account, User: x.User, Depth: x.Depth, Shares: known(float64(x.Raw)), Share: known(100 * mine), Decayed: known(100 * x.UsedPart), Factor: x.Factor}
		rows = append(rows, b.fairRow(r, s))
	}
	for g, s := range used { // jobs of accounts that the rules do not name any more
		if g.user == "" || byUser {
			rows = append(rows, b.fairRow(Row{Account: g.account, User: g.user}, s))
		}
	}
	sortUnknown(rows[min(len(rows), b.sharesShown(byUser)):])
	return rows
}

// sharesShown is how many rows are of shares.
func (b *Builder) sharesShown(byUser bool) (n int) {
	for i := range b.q.Shares {
		if b.q.Shares[i].User == "" || byUser {
			n++
		}
	}
	return n
}

// fairRow adds what was used to a row. Who counts their own jobs alone knows no part of the whole.
func (b *Builder) fairRow(r Row, s *sums) Row {
	s.fill(&r, Fairness)
	r.Jobs = nil
	if b.q.Scope != ScopeAll {
		return r
	}
	part, whole := s.gpuHeld, b.total.gpuHeld
	if whole == 0 {
		part, whole = s.cpuHeld, b.total.cpuHeld
	}
	if r.UsePart = partOf(part, whole); r.UsePart != nil && r.Share != nil && *r.Share > 0 {
		r.UseRatio = known(*r.UsePart / *r.Share)
	}
	return r
}

func (s *sums) addHeld(o *sums) {
	s.gpuHeld += o.gpuHeld
	s.cpuHeld += o.cpuHeld
}
