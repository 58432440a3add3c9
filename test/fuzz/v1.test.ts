import { testEveryResponse } from "./every-response.ts";

testEveryResponse("v1");
