package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"unicode/utf8"
)

// traced is where a body is cut in the trace.
const traced = 4000

var traceLock sync.Mutex

// trace writes each request and its answer to standard error. The answer of a watch is not read, since it does not end.
func trace(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		sent := replay(&request.Body)
		response, err := next.RoundTrip(request)
		traceLock.Lock()
		defer traceLock.Unlock()
		fmt.Fprintf(os.Stderr, "> %s %s %s\n%s", request.Method, request.URL.RequestURI(), request.Header, sent)
		if err != nil {
			fmt.Fprintf(os.Stderr, "< %v\n", err)
			return nil, err
		}
		received := ""
		if !strings.Contains(request.URL.RawQuery, "watch=") {
			received = replay(&response.Body)
		}
		fmt.Fprintf(os.Stderr, "< %s %s\n%s", response.Status, response.Header, received)
		return response, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// replay reads a body, puts it back, and returns it as text.
func replay(body *io.ReadCloser) string {
	if *body == nil {
		return ""
	}
	content, err := io.ReadAll(*body)
	*body = io.NopCloser(io.MultiReader(bytes.NewReader(content), failing{err}))
	text := content[:min(len(content), traced)]
	if !utf8.Valid(content) {
		return fmt.Sprintf("  %q\n", text)
	}
	return fmt.Sprintf("  %s\n", text)
}

// failing gives the error that ended the body, if there was one.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}
