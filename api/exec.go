package api

// Exec asks for a command beside the tasks of a running job (POST
// /v1/jobs/{job}/exec, package frame has the protocol).
type Exec struct {
	Command []string `json:"command"`
	Node    string   `json:"node,omitempty" doc:"empty: the node of Rank"`
	Rank    *int     `json:"rank,omitempty" doc:"in the environment and on the node of this rank; left out: the batch script's"`
	TTY     bool     `json:"tty,omitempty"`
	Window  Window   `json:"window,omitzero" doc:"first size of the terminal"`
	Env     []string `json:"env,omitempty" doc:"NAME=VALUE, added"`
}

// Window is the size of a terminal in characters.
type Window struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Lease is the answer to a renewal (POST /v1/jobs/{job}/lease).
type Lease struct {
	Seconds int64  `json:"seconds" doc:"until the allocation ends unless it is renewed again"`
	State   string `json:"state" doc:"of the allocation: PENDING, RUNNING, …"`
}
