// A web app whose users have API keys. Set POSTERN_API_URL, POSTERN_ROOT_KEY and PORT.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// Timeout of a verification. The request is then rejected, because its key cannot be checked.
	deadline = 2 * time.Second
	// Maximum length of a key; longer ones are rejected without a call.
	keyLengthMax   = 512
	answerBytesMax = 4_000_000
)

var (
	apiURL  = cmp.Or(os.Getenv("POSTERN_API_URL"), "http://127.0.0.1:8080")
	rootKey = os.Getenv("POSTERN_ROOT_KEY")
	// The client keeps idle connections, so that a busy app does not open one per call.
	client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second}}
)

// A question is the body of a keys.verifyKey call: a key, a permission, and a rate limit of the key.
type question struct {
	Key         string      `json:"key"`
	Permissions string      `json:"permissions"`
	Ratelimits  []ratelimit `json:"ratelimits"`
}

type ratelimit struct {
	Name     string `json:"name"`
	Limit    int    `json:"limit"`
	Duration int    `json:"duration"`
}

// A verification has the members of a keys.verifyKey response that this app reads.
type verification struct {
	Valid    bool           `json:"valid"`
	Code     string         `json:"code"`
	KeyID    string         `json:"keyId"`
	Meta     map[string]any `json:"meta"`
	Identity struct {
		ExternalID string `json:"externalId"`
	} `json:"identity"`
	Ratelimits []struct {
		Exceeded bool  `json:"exceeded"`
		Reset    int64 `json:"reset"`
	} `json:"ratelimits"`
}

// A refusal is the response to a rejected request.
type refusal struct {
	status  int
	message string
	headers map[string]string
}

// verify checks the key of an Authorization header and returns a refusal or the caller.
func verify(ctx context.Context, authorization string) (*verification, *refusal) {
	scheme, key, _ := strings.Cut(strings.TrimSpace(authorization), " ")
	key = strings.TrimSpace(key)
	if !strings.EqualFold(scheme, "Bearer") || key == "" || len(key) > keyLengthMax {
		return nil, notAuthenticated("An API key is needed: Authorization: Bearer KEY")
	}
	found, err := ask(ctx, key)
	if err != nil {
		// The reason is logged and not shown to the caller.
		log.Printf("verification failed: %v", err)
		return nil, &refusal{503, "API keys cannot be verified now.", map[string]string{"Retry-After": "1"}}
	}
	if found.Valid {
		return found, nil
	}
	switch found.Code {
	case "NOT_FOUND", "DISABLED", "EXPIRED":
		return nil, notAuthenticated("The API key is not valid.")
	case "RATE_LIMITED":
		return nil, &refusal{429, "Too many requests.", map[string]string{"Retry-After": found.secondsUntilReset()}}
	case "USAGE_EXCEEDED":
		return nil, &refusal{429, "The API key has no credits left.", nil}
	default:
		// INSUFFICIENT_PERMISSIONS, FORBIDDEN, and codes that later versions may add.
		return nil, &refusal{403, "The API key may not do this.", nil}
	}
}

func ask(ctx context.Context, key string) (*verification, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	limits := []ratelimit{{Name: "reports", Limit: 10, Duration: 60_000}}
	body, err := json.Marshal(question{Key: key, Permissions: "reports.read", Ratelimits: limits})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(apiURL, "/")+"/v2/keys.verifyKey", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+rootKey)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax))
	if err != nil {
		return nil, err
	}
	// A rejected key also has status 200; any other status concerns the call, such as a root key without permission.
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %.1000s", response.Status, answer)
	}
	var found struct {
		Data *verification `json:"data"`
	}
	if err := json.Unmarshal(answer, &found); err != nil {
		return nil, err
	}
	if found.Data == nil {
		return nil, fmt.Errorf("the answer has no data")
	}
	return found.Data, nil
}

func (found *verification) secondsUntilReset() string {
	var reset int64
	for _, limit := range found.Ratelimits {
		if limit.Exceeded {
			reset = max(reset, limit.Reset)
		}
	}
	seconds := math.Ceil(time.Until(time.UnixMilli(reset)).Seconds())
	return strconv.Itoa(int(max(1, seconds)))
}

func notAuthenticated(message string) *refusal {
	return &refusal{401, message, map[string]string{"WWW-Authenticate": "Bearer"}}
}

func reports(writer http.ResponseWriter, request *http.Request) {
	found, refused := verify(request.Context(), request.Header.Get("Authorization"))
	writer.Header().Set("Content-Type", "application/json")
	if refused != nil {
		for name, value := range refused.headers {
			writer.Header().Set(name, value)
		}
		writer.WriteHeader(refused.status)
		json.NewEncoder(writer).Encode(map[string]any{"error": refused.message})
		return
	}
	who := map[string]any{"keyId": found.KeyID, "externalId": found.Identity.ExternalID, "plan": found.Meta["plan"]}
	json.NewEncoder(writer).Encode(map[string]any{"reports": []any{}, "for": who})
}

func main() {
	if rootKey == "" {
		log.Fatal("set POSTERN_ROOT_KEY to a root key that has api.*.verify_key")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /reports", reports)
	listener, err := net.Listen("tcp", "127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "3001"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	log.Fatal((&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}).Serve(listener))
}
