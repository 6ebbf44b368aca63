package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/spec/route"
)

// apiRoute is one line of the API.
type apiRoute struct {
	method, path string
	verb         auth.Verb
	id, summary  string
	about        string       // longer than summary
	tag          string       // section of the document
	body         reflect.Type // of the request; nil: none
	example      any          // of the body
	answer       reflect.Type // JSON that a stream may be; nil: what the handler returns
	media        []string     // of the answer where it is not JSON
	status       int          // 0: 200, or 204 without an answer
	owned        bool         // the handler asks auth, about each object
	lasts        bool         // it may last, and holds little: see concurrencyLimit
	also         []auth.Verb  // that the handler may ask for beside verb
	count        *routeCount
}

func (r *apiRoute) pattern() string { return r.method + " " + r.path }

// verbExtension is where the document says what a route asks auth for.
const verbExtension = "x-cox-verb"

// newAPI makes the part that documents routes and reads their parameters.
func newAPI(mux *http.ServeMux, version string) huma.API {
	cfg := huma.DefaultConfig("Coxswain", strconv.Itoa(api.Version)+"."+strconv.Itoa(api.Minor))
	cfg.Info.Description = "One control plane for GPU work. docs/api.md says how versions, errors, cursors and watches work."
	cfg.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	cfg.OpenAPIPath, cfg.DocsPath, cfg.SchemasPath = "/openapi", "", ""
	cfg.CreateHooks = nil // no $schema links: they cost every answer
	cfg.RejectUnknownQueryParameters = true
	cfg.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	cfg.Components.Schemas.RegisterTypeAlias(typeOf[route.Origin](), typeOf[string]()) // it writes itself as text
	cfg.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer", Description: "On TCP. On the unix socket the kernel says who asks."},
	}
	return humago.New(mux, cfg)
}

// schemaName puts the package before types that are not the API's own, since two
// packages may have types of one name.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := huma.DefaultSchemaNamer(t, hint)
	if pkg := t.PkgPath(); t.Name() != "" && pkg != "" && !strings.HasSuffix(pkg, "/api") {
		pkg = pkg[strings.LastIndexByte(pkg, '/')+1:]
		name = strings.ToUpper(pkg[:1]) + pkg[1:] + name
	}
	return name
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// answer is what huma calls to write a response.
type answer struct{ Body func(huma.Context) }

// addRoute registers a route whose answer is JSON; a nil answer is 204.
func addRoute[I, O any](s *Server, r apiRoute, h func(c *call, in *I) (*O, error)) {
	out := reflect.TypeFor[O]()
	addHandler(s, &r, out, func(c *call, in *I) error {
		v, err := h(c, in)
		switch {
		case err == errAnswered:
			return nil
		case err != nil:
			return err
		}
		if v == nil {
			c.w.WriteHeader(http.StatusNoContent)
			return nil
		}
		return c.writeJSON(r.status, v)
	})
}

// addStreamRoute registers a route that writes its answer itself. An error that it
// returns before it wrote anything is the answer.
func addStreamRoute[I any](s *Server, r apiRoute, h func(c *call, in *I) error) {
	addHandler(s, &r, r.answer, h)
}

func addHandler[I any](s *Server, r *apiRoute, out reflect.Type, h func(c *call, in *I) error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	r.count = s.metrics.routeCounters(r.pattern())
	s.routes = append(s.routes, r)
	op := huma.Operation{
		Method: r.method, Path: r.path, OperationID: r.id, Summary: r.summary, Description: r.about,
		Tags: []string{r.tag}, DefaultStatus: r.status, Extensions: map[string]any{verbExtension: string(r.verb)},
		Middlewares: huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
			c := callOf(ctx.Context())
			c.route = r
			if err := s.authorize(c); err != nil {
				c.writeError(err)
				return
			}
			next(ctx)
		}},
	}
	if r.verb != auth.Health && r.verb != auth.Info {
		op.Security = []map[string][]string{{"token": {}}}
	}
	huma.Register(s.api, op, func(ctx ctxt, in *I) (*answer, error) {
		c := callOf(ctx)
		if err := h(c, in); err != nil {
			c.writeError(err)
		}
		return &answer{func(huma.Context) {}}, nil
	})
	s.documentRoute(r, out)
}

// documentRoute adds to the OpenAPI document what huma cannot see, because bodies are
// read and written here.
func (s *Server) documentRoute(r *apiRoute, out reflect.Type) {
	doc := s.api.OpenAPI()
	item := doc.Paths[r.path]
	op := map[string]*huma.Operation{http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodDelete: item.Delete}[r.method]
	schemas := doc.Components.Schemas
	if r.body != nil {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/json": {Schema: schemas.Schema(r.body, true, ""), Example: r.example},
		}}
	}
	content := map[string]*huma.MediaType{}
	if out != nil && out != typeOf[none]() {
		content["application/json"] = &huma.MediaType{Schema: schemas.Schema(out, true, "")}
	}
	for _, m := range r.media {
		content[m] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
		if m == eventStream { // what stands behind data:
			content[m], content["application/json"] = content["application/json"], nil
			delete(content, "application/json")
		}
	}
	problem := map[string]*huma.MediaType{problemType: {Schema: schemas.Schema(typeOf[api.Error](), true, "")}}
	op.Responses = map[string]*huma.Response{
		strconv.Itoa(r.status): {Description: http.StatusText(r.status), Content: content},
		"default":              {Description: "an error; its title is the kind of fault", Content: problem},
	}
	if r.verb != auth.Health && r.verb != auth.Info {
		op.Responses["401"] = &huma.Response{Description: "no identity: no token, or one that is wrong, expired or revoked", Content: problem}
	}
}

// none is the answer of routes that have none.
type none struct{}

// decodeBody reads the body of a request. A field that this version does not know is
// refused: what is asked for must not be left out silently.
func decodeBody[T any](c *call) (*T, error) {
	v := new(T)
	dec := json.NewDecoder(strings.NewReader(string(c.body)))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil && dec.More() {
		err = errors.New("there is more behind its end")
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "the body of %s is not the JSON that is expected: %w", c.route.pattern(), err).
			Advise("its form stands in /openapi.json; a client that is newer than this server needs a newer server (API %s)", apiVersion)
	}
	return v, nil
}

// loosenAnswers lets answers have fields that the document does not know: clients made
// from it must take those of newer servers. Requests stay strict, as decode is.
func (s *Server) loosenAnswers() {
	schemas := s.api.OpenAPI().Components.Schemas.Map()
	var walk func(sc *huma.Schema)
	seen := map[*huma.Schema]bool{}
	walk = func(sc *huma.Schema) {
		if sc == nil || seen[sc] {
			return
		}
		seen[sc] = true
		if name, ok := strings.CutPrefix(sc.Ref, "#/components/schemas/"); ok {
			walk(schemas[name])
		}
		if strict, ok := sc.AdditionalProperties.(bool); ok && !strict {
			sc.AdditionalProperties = nil
		}
		if inner, ok := sc.AdditionalProperties.(*huma.Schema); ok {
			walk(inner)
		}
		walk(sc.Items)
		for _, p := range sc.Properties {
			walk(p)
		}
	}
	for _, item := range s.api.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete} {
			if op == nil {
				continue
			}
			for _, resp := range op.Responses {
				for _, m := range resp.Content {
					walk(m.Schema)
				}
			}
		}
	}
}
