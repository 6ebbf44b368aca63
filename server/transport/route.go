package transport

import (
	"context"
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
)

// Route is one line of the API.
type Route struct {
	Method, Path string
	Verb         auth.Verb
	ID, Summary  string
	About        string       // longer than summary
	Tag          string       // section of the document
	Body         reflect.Type // of the request; nil: none
	Example      any          // of the body
	Answer       reflect.Type // JSON that a stream may be; nil: what the handler returns
	Media        []string     // of the answer where it is not JSON
	Status       int          // 0: 200, or 204 without an answer
	Owned        bool         // the handler asks auth, about each object
	Lasts        bool         // it may last, and holds little: see concurrencyLimit
	Also         []auth.Verb  // that the handler may ask for beside verb
	count        *RouteCount
}

func (r *Route) Pattern() string { return r.Method + " " + r.Path }

// verbExtension is where the document says what a route asks auth for.
const verbExtension = "x-cox-verb"

// newAPI makes the part that documents routes and reads their parameters.
func newAPI(mux *http.ServeMux) huma.API {
	cfg := huma.DefaultConfig("Coxswain", strconv.Itoa(api.Version)+"."+strconv.Itoa(api.Minor))
	cfg.Info.Description = "One control plane for GPU work. docs/reference/api.md says how versions, errors, cursors and watches work."
	cfg.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	cfg.OpenAPIPath, cfg.DocsPath, cfg.SchemasPath = "/openapi", "", ""
	cfg.CreateHooks = nil // no $schema links: they cost every answer
	cfg.RejectUnknownQueryParameters = true
	cfg.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	cfg.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer", Description: "On TCP. On the unix socket the kernel says who asks."},
		"session": {Type: "apiKey", In: "cookie", Name: "cox_session_PORT", Description: "Of the web console, set by GET /login?code=…. " +
			"Requests with it have to come from the console's own pages; those other than GET need the header " + api.VersionHeader + "."},
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

// TypeOf is the type of a body or an answer, for Route.
func TypeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// answer is what huma calls to write a response.
type answer struct{ Body func(huma.Context) }

// AddRoute registers a route whose answer is JSON; a nil answer is 204.
func AddRoute[I, O any](s *Server, r Route, h func(c *Call, in *I) (*O, error)) {
	out := reflect.TypeFor[O]()
	addHandler(s, &r, out, func(c *Call, in *I) error {
		v, err := h(c, in)
		switch {
		case err == ErrAnswered:
			return nil
		case err != nil:
			return err
		}
		if v == nil {
			c.W.WriteHeader(http.StatusNoContent)
			return nil
		}
		return c.writeJSON(r.Status, v)
	})
}

// AddStreamRoute registers a route that writes its answer itself. An error that it
// returns before it wrote anything is the answer.
func AddStreamRoute[I any](s *Server, r Route, h func(c *Call, in *I) error) {
	addHandler(s, &r, r.Answer, h)
}

func addHandler[I any](s *Server, r *Route, out reflect.Type, h func(c *Call, in *I) error) {
	if r.Status == 0 {
		r.Status = http.StatusOK
	}
	r.count = s.Metrics.routeCounters(r.Pattern())
	s.Routes = append(s.Routes, r)
	op := huma.Operation{
		Method: r.Method, Path: r.Path, OperationID: r.ID, Summary: r.Summary, Description: r.About,
		Tags: []string{r.Tag}, DefaultStatus: r.Status, Extensions: map[string]any{verbExtension: string(r.Verb)},
		Middlewares: huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
			c := callOf(ctx.Context())
			c.route = r
			if err := s.authorize(c); err != nil {
				c.WriteError(err)
				return
			}
			next(ctx)
		}},
	}
	if r.Verb != auth.Health && r.Verb != auth.Info {
		op.Security = []map[string][]string{{"token": {}}, {"session": {}}}
	}
	huma.Register(s.API, op, func(ctx context.Context, in *I) (*answer, error) {
		c := callOf(ctx)
		if err := h(c, in); err != nil {
			c.WriteError(err)
		}
		return &answer{func(huma.Context) {}}, nil
	})
	s.documentRoute(r, out)
}

// documentRoute adds to the OpenAPI document what huma cannot see, because bodies are
// read and written here.
func (s *Server) documentRoute(r *Route, out reflect.Type) {
	doc := s.API.OpenAPI()
	item := doc.Paths[r.Path]
	op := map[string]*huma.Operation{http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodDelete: item.Delete}[r.Method]
	schemas := doc.Components.Schemas
	if r.Body != nil {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/json": {Schema: schemas.Schema(r.Body, true, ""), Example: r.Example},
		}}
	}
	content := map[string]*huma.MediaType{}
	if out != nil && out != TypeOf[None]() {
		content["application/json"] = &huma.MediaType{Schema: schemas.Schema(out, true, "")}
	}
	for _, m := range r.Media {
		content[m] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
		if m == EventStream { // what stands behind data:
			content[m], content["application/json"] = content["application/json"], nil
			delete(content, "application/json")
		}
	}
	problem := map[string]*huma.MediaType{ProblemType: {Schema: schemas.Schema(TypeOf[api.Error](), true, "")}}
	op.Responses = map[string]*huma.Response{
		strconv.Itoa(r.Status): {Description: http.StatusText(r.Status), Content: content},
		"default":              {Description: "an error; its title is the kind of fault", Content: problem},
	}
	if r.Verb != auth.Health && r.Verb != auth.Info {
		op.Responses["401"] = &huma.Response{Description: "no identity: no token, or one that is wrong, expired or revoked", Content: problem}
	}
}

// None is the answer of routes that have none.
type None struct{}

// Nothing is the input of routes without parameters.
type Nothing struct{}

// ErrAnswered is not an error: the handler has written the answer.
var ErrAnswered = errors.New("answered")

// EventStream is the media type of a watch.
const EventStream = "text/event-stream"

// DecodeBody reads the body of a request. A field that this version does not know is
// refused: what is asked for must not be left out silently.
func DecodeBody[T any](c *Call) (*T, error) {
	v := new(T)
	dec := json.NewDecoder(strings.NewReader(string(c.Body)))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil && dec.More() {
		err = errors.New("there is more behind its end")
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "the body of %s is not the JSON that is expected: %w", c.route.Pattern(), err).
			Advise("its form stands in /openapi.json; a client that is newer than this server needs a newer server (API %s)", APIVersion)
	}
	return v, nil
}

// LoosenAnswers lets answers have fields that the document does not know: clients made
// from it must take those of newer servers. Requests stay strict, as decode is.
func (s *Server) LoosenAnswers() {
	schemas := s.API.OpenAPI().Components.Schemas.Map()
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
	for _, item := range s.API.OpenAPI().Paths {
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
