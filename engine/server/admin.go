package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// adminPrefix is the path prefix of the admin API. Its requests are unsigned, as the built-in access key is public. A
// server with its own secret requires the access key instead (mayAdminister). Options.NoAdmin hides the API from the
// network.
const adminPrefix = "/_engine/"

// maxAdminBytes is the maximum length of an admin request's body, which may contain a large sample.
const maxAdminBytes = 16 << 20

// adminError is a refusal with an HTTP status.
type adminError struct {
	status  int
	message string
}

func (e *adminError) Error() string { return e.message }

func badRequest(format string, args ...any) error {
	return &adminError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func (s *Server) admin(ctx context.Context, r *request) *answer {
	result, err := s.administer(ctx, r)
	return s.adminAnswer(r, result, err)
}

func (s *Server) adminAnswer(r *request, result any, err error) *answer {
	status := http.StatusOK
	header := http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}}
	if err != nil {
		status = http.StatusBadRequest
		var refused *adminError
		switch {
		case errors.As(err, &refused):
			status = refused.status
		case errors.Is(err, ErrNoTable):
			status = http.StatusNotFound
		}
		result = map[string]string{"error": err.Error()}
	}
	if status == http.StatusUnauthorized {
		header["Www-Authenticate"] = []string{`Basic realm="tsimport"`}
	}
	if status == http.StatusMethodNotAllowed {
		header["Allow"] = []string{strings.Join(methodsOf(r.path), ", ")}
	}
	body, err := json.Marshal(result)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written as JSON"}`)
	}
	body = append(body, '\n')
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	return &answer{status: status, header: header, body: body}
}

// adminHandler carries out a request. table is the name in paths below tables/.
type adminHandler func(s *Server, ctx context.Context, table string, body []byte) (any, error)

var adminHandlers = map[string]map[string]adminHandler{
	"clock":    {http.MethodGet: (*Server).adminClock, http.MethodPost: reads((*Server).adminAdvance)},
	"reset":    {http.MethodPost: (*Server).adminReset},
	"simulate": {http.MethodPost: reads((*Server).adminSimulate)},
	"faults": {
		http.MethodGet: (*Server).adminFaults, http.MethodPost: reads((*Server).adminSetFaults),
		http.MethodDelete: (*Server).adminEndFaults,
	},
	"stats":           {http.MethodGet: (*Server).adminStats, http.MethodDelete: (*Server).adminResetStats},
	"tables/simulate": {http.MethodPost: reads((*Server).adminSimulate)},
	"tables/split":    {http.MethodPost: reads((*Server).adminSplit)},
	"tables/move":     {http.MethodPost: reads((*Server).adminMove)},
}

// reads makes a handler for requests whose body is a JSON object.
func reads[J any](f func(s *Server, ctx context.Context, table string, j *J) (any, error)) adminHandler {
	return func(s *Server, ctx context.Context, table string, body []byte) (any, error) {
		var j J
		if err := readJSON(body, &j); err != nil {
			return nil, err
		}
		return f(s, ctx, table, &j)
	}
}

// adminEndpoints returns the answer to GET of the prefix itself: all paths with their methods.
func adminEndpoints() any {
	list := map[string][]string{}
	for name := range adminHandlers {
		path := name
		if verb, ok := strings.CutPrefix(name, "tables/"); ok {
			path = "tables/TABLE/" + verb
		}
		list[adminPrefix+path] = methodsOf(adminPrefix + path)
	}
	return map[string]any{"endpoints": list}
}

// isAdmin reports whether a path belongs to the admin API. The prefix may lack its last slash.
func isAdmin(path string) bool { return strings.HasPrefix(path+"/", adminPrefix) }

func adminPath(path string) (name, table string) {
	name = strings.TrimPrefix(path, adminPrefix)
	if rest, ok := strings.CutPrefix(name, "tables/"); ok {
		if t, verb, ok := strings.Cut(rest, "/"); ok && t != "" {
			return "tables/" + verb, t
		}
	}
	return name, ""
}

func methodsOf(path string) (methods []string) {
	if len(path) <= len(adminPrefix) {
		return []string{http.MethodGet}
	}
	name, _ := adminPath(path)
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		if adminHandlers[name][m] != nil {
			methods = append(methods, m)
		}
	}
	return methods
}

func (s *Server) administer(ctx context.Context, r *request) (any, error) {
	if err := fromHere(r.header); err != nil {
		return nil, err
	}
	name, table := adminPath(r.path)
	methods := adminHandlers[name]
	if len(r.path) <= len(adminPrefix) {
		if r.method == http.MethodGet {
			return adminEndpoints(), nil
		}
	} else if methods == nil {
		return nil, &adminError{http.StatusNotFound, fmt.Sprintf("there is no %s; see GET %s", r.path, adminPrefix)}
	}
	handler := methods[r.method]
	if handler == nil {
		return nil, &adminError{http.StatusMethodNotAllowed, fmt.Sprintf("%s does not accept %s, only %s", r.path, r.method,
			strings.Join(methodsOf(r.path), ", "))}
	}
	if r.tooLong {
		return nil, &adminError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the request is longer than %d bytes",
			maxAdminBytes)}
	}
	return handler(s, ctx, table, r.body)
}

// fromHere refuses requests that other web pages make a browser send.
func fromHere(h http.Header) error {
	site := h.Get("Sec-Fetch-Site")
	if h.Get("Origin") != "" || site != "" && site != "same-origin" && site != "none" {
		return &adminError{http.StatusForbidden, "requests from web pages are refused"}
	}
	return nil
}

// readJSON reads one JSON object without unknown fields.
func readJSON(body []byte, dst any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(dst); err != nil {
		return badRequest("read the request's JSON: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return badRequest("read the request's JSON: data follows the object")
	}
	return nil
}
