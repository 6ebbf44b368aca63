package api

// Quotas is what accounts may hold, hold, borrow and lend.
type Quotas struct {
	Accounts []QuotaAccount `json:"accounts" doc:"in the order of the trees: an account before those below it"`
}

// QuotaAccount is an account with a quota, or one that has such below it.
type QuotaAccount struct {
	Account  string        `json:"account"`
	Parent   string        `json:"parent,omitempty" doc:"the account above, where that has a quota or others below it have"`
	Depth    int           `json:"depth" doc:"0: the root of a tree"`
	Own      bool          `json:"own,omitempty" doc:"the jobs of the account itself, where there are accounts with quotas below it"`
	Running  int           `json:"running" doc:"jobs that are counted here"`
	Pending  int           `json:"pending" doc:"jobs that wait"`
	Share    *float64      `json:"share,omitempty" doc:"dominant share: of the resource of which it borrows most, the part of what could be lent to it, divided by its weight, in thousandths. Left out: it borrows nothing; -1: it borrows without a right to it (weight 0)"`
	Dominant string        `json:"dominant,omitempty" doc:"that resource"`
	Amounts  []QuotaAmount `json:"amounts,omitempty"`
}

// QuotaAmount is a resource of a flavour in an account: CPUs, GiB, devices, or a number.
type QuotaAmount struct {
	Flavor    string   `json:"flavor"`
	Resource  string   `json:"resource"`
	Nominal   float64  `json:"nominal" doc:"guaranteed to it"`
	Quota     float64  `json:"quota" doc:"nominal, and what the accounts below it lend"`
	Held      float64  `json:"held" doc:"by running jobs of it and of accounts below it"`
	Borrowed  float64  `json:"borrowed,omitempty" doc:"held beyond its quota"`
	Lent      float64  `json:"lent,omitempty" doc:"of its quota that its siblings may hold now, at most: what of it is idle, as far as they borrow"`
	Pending   float64  `json:"pending,omitempty" doc:"what jobs that wait ask for at least, in the flavour in which they would go"`
	MayBorrow *float64 `json:"may_borrow,omitempty" doc:"above its quota at most; left out: all there is"`
	MayLend   *float64 `json:"may_lend,omitempty" doc:"at most; left out: all of it"`
	From      []string `json:"from,omitempty" doc:"siblings and accounts above of whose quota it may have borrowed"`
}
