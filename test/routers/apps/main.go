// HTTP routers written in Go. Prints a line `name port` for each. A guarded path responds `guarded`, every other one `other`.
// Argument: the guarded paths as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/gorilla/mux"
)

func guarded(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "guarded") }
func other(w http.ResponseWriter, _ *http.Request)   { io.WriteString(w, "other") }

func listen(name string, handler http.Handler) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(name, listener.Addr().(*net.TCPAddr).Port)
	go http.Serve(listener, handler)
}

func main() {
	var paths []string
	if err := json.Unmarshal([]byte(os.Args[1]), &paths); err != nil {
		panic(err)
	}
	std := http.NewServeMux()
	chiRouter := chi.NewRouter()
	gorilla := mux.NewRouter()
	gin.SetMode(gin.ReleaseMode)
	ginRouter := gin.New()
	for _, path := range paths {
		// Braces enclose parameters, and none of these routers has an escape for braces.
		if strings.ContainsAny(path, "{") {
			continue
		}
		if !strings.Contains(path, " ") {
			std.HandleFunc(path, guarded)
		}
		gorilla.HandleFunc(path, guarded)
		if !strings.Contains(path, "*") {
			chiRouter.Get(path, guarded)
		}
		if !strings.ContainsAny(path, "*:") {
			ginRouter.GET(path, func(c *gin.Context) { guarded(c.Writer, c.Request) })
		}
	}
	std.HandleFunc("/", other)
	chiRouter.NotFound(other)
	gorilla.NotFoundHandler = http.HandlerFunc(other)
	ginRouter.NoRoute(func(c *gin.Context) { other(c.Writer, c.Request) })
	listen("net/http", std)
	listen("chi", chiRouter)
	listen("gorilla", gorilla)
	listen("gin", ginRouter)
	select {}
}
