// Package secrets has the routes of secrets: a user keeps values that his jobs get when they are
// launched. No route sends a value back.
package secrets

import (
	"net/http"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/store/secret"
)

// namePath names a secret of the caller's.
type namePath struct {
	Name string `path:"name"`
}

type call = transport.Call

// Register adds the routes to a server. Without a store every one of them is refused.
func Register(t *transport.Server, store *secret.Store) {
	transport.AddRoute(t, transport.Route{
		Method: http.MethodGet, Path: "/v1/secrets", Verb: auth.Secrets, Owned: true, ID: "listSecrets", Tag: "secrets",
		Summary: "List the caller's secrets", About: "Their values are never sent back.",
	}, func(c *call, _ *transport.Nothing) (*api.Secrets, error) { return listSecrets(c, store) })
	transport.AddRoute(t, transport.Route{
		Method: http.MethodPut, Path: "/v1/secrets/{name}", Verb: auth.Secrets, Owned: true, ID: "setSecret", Tag: "secrets", Body: transport.TypeOf[api.SetSecret](),
		Summary: "Keep a secret for the caller's jobs", Example: &api.SetSecret{Value: []byte("value")},
	}, func(c *call, in *namePath) (*transport.Nothing, error) { return nil, setSecret(c, store, in.Name) })
	transport.AddRoute(t, transport.Route{
		Method: http.MethodDelete, Path: "/v1/secrets/{name}", Verb: auth.Secrets, Owned: true, ID: "deleteSecret", Tag: "secrets",
		Summary: "Forget a secret", About: "Jobs that run keep what they were given.",
	}, func(c *call, in *namePath) (*transport.Nothing, error) { return nil, removeSecret(c, store, in.Name) })
}

// checkCaller reports whether there is a store, and whether the caller may use his own part of it.
func checkCaller(c *call, store *secret.Store) error {
	if store == nil {
		return fault.New(fault.Unsupported, "this server keeps no secrets").Advise("start one that has a state directory: cox up")
	}
	return c.Allowed(auth.Secrets, auth.Object{Name: "the secrets of " + c.ID.Name, Owned: true, UID: c.ID.UID})
}

func listSecrets(c *call, store *secret.Store) (*api.Secrets, error) {
	if err := checkCaller(c, store); err != nil {
		return nil, err
	}
	found, err := store.List(c.ID.UID)
	if err != nil {
		return nil, err
	}
	out := &api.Secrets{Secrets: []api.Secret{}}
	for _, s := range found {
		out.Secrets = append(out.Secrets, api.Secret{Name: s.Name, Bytes: s.Size, Changed: s.Changed.UTC()})
	}
	return out, nil
}

func setSecret(c *call, store *secret.Store, name string) error {
	if err := checkCaller(c, store); err != nil {
		return err
	}
	req, err := transport.DecodeBody[api.SetSecret](c)
	if err != nil {
		return err
	}
	return store.Put(c.ID.UID, name, req.Value)
}

func removeSecret(c *call, store *secret.Store, name string) error {
	if err := checkCaller(c, store); err != nil {
		return err
	}
	return store.Remove(c.ID.UID, name)
}
