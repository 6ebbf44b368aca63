package server

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// TestNodesOfOneName: a name that nodes of two pools have is said with the pool where one node
// is meant, and shows both where a list is.
func TestNodesOfOneName(t *testing.T) {
	p := servertest.NewPlane()
	p.Nodes[0].Node.Pool, p.Nodes[1].Node.Pool = "a", "b"
	p.Nodes[1].Node.Name = p.Nodes[0].Node.Name
	r := start(t, p, nil)
	c := r.Admin(t)
	for _, err := range []error{
		second(c.Node(t.Context(), "v1")),
		second(c.NewReservation(t.Context(), &api.SetReservation{Reservation: api.Reservation{Name: "r", Nodes: []string{"v1"}, Start: "2100-01-01T00:00:00Z", Duration: 3600, Users: []string{"anna"}}})),
	} {
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "node v1 is in 2 pools: a, b") || fault.Remedy(err) != "name its pool too: a/v1" {
			t.Errorf("%v; %s", err, fault.Remedy(err))
		}
	}
	for _, pool := range []string{"a", "b"} {
		if n, err := c.Node(t.Context(), pool+"/v1"); err != nil || n.Pool != pool || n.Name != "v1" {
			t.Errorf("%s/v1 is %+v, %v", pool, n, err)
		}
	}
	if _, err := c.Node(t.Context(), "a/v3"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a node of no such pool: %v", err)
	}
	if n, err := c.Node(t.Context(), "v3"); err != nil || n.Name != "v3" {
		t.Errorf("v3 is %+v, %v", n, err)
	}
}

func second[T any](_ T, err error) error { return err }
