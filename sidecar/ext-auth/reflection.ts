import {
  create,
  type DescFile,
  type DescMessage,
  type DescService,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import {
  type ServerReflectionRequest,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from "./generated/grpc/reflection/v1/reflection_pb.js";

/* gRPC server reflection: tools such as grpcurl use it to discover services. Both versions of the protocol have the same messages. */

/** Responds to reflection requests for these services. */
export class Reflection {
  readonly #services: readonly DescService[];
  readonly #files = new Map<string, DescFile>();
  readonly #fileOfSymbol = new Map<string, DescFile>();
  readonly #bytes = new Map<DescFile, Uint8Array[]>();

  constructor(services: readonly DescService[]) {
    this.#services = services;
    for (const service of services) {
      this.#addFile(service.file);
      this.#fileOfSymbol.set(service.typeName, service.file);
      for (const method of service.methods) this.#fileOfSymbol.set(`${service.typeName}.${method.name}`, service.file);
    }
  }

  respond(originalRequest: ServerReflectionRequest): ServerReflectionResponse {
    const { host, messageRequest: asked } = originalRequest;
    const respond = (messageResponse: ReflectionResponse): ServerReflectionResponse =>
      create(ServerReflectionResponseSchema, { validHost: host, originalRequest, messageResponse });
    const refuse = (errorCode: Code, errorMessage: string): ServerReflectionResponse =>
      respond({ case: "errorResponse", value: { errorCode, errorMessage } });
    if (asked.case === "listServices") {
      const service = this.#services.map(({ typeName }) => ({ name: typeName }));
      return respond({ case: "listServicesResponse", value: { service } });
    }
    let file: DescFile | undefined;
    if (asked.case === "fileByFilename") file = this.#files.get(asked.value);
    else if (asked.case === "fileContainingSymbol") file = this.#fileOfSymbol.get(asked.value);
    else return refuse(Code.Unimplemented, "nothing is known here of extensions");
    if (file === undefined) return refuse(Code.NotFound, "not found");
    const fileDescriptorProto = this.#bytesOf(file);
    return respond({ case: "fileDescriptorResponse", value: { fileDescriptorProto } });
  }

  /** Returns the encoded file and its imports. Each file is encoded only once, so further requests cost little. */
  #bytesOf(file: DescFile): Uint8Array[] {
    const made =
      this.#bytes.get(file) ?? [...closure(file)].map((one) => toBinary(FileDescriptorProtoSchema, protoOf(one)));
    this.#bytes.set(file, made);
    return made;
  }

  #addFile(file: DescFile): void {
    const path = protoOf(file).name;
    if (this.#files.has(path)) return;
    this.#files.set(path, file);
    for (const { typeName } of [...messagesBelow(file.messages), ...file.enums]) {
      this.#fileOfSymbol.set(typeName, file);
    }
    for (const dependency of file.dependencies) this.#addFile(dependency);
  }
}

type ReflectionResponse = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;

const messagesBelow = (messages: readonly DescMessage[]): DescMessage[] =>
  messages.flatMap((message) => [message, ...messagesBelow(message.nestedMessages)]);

const protoOf = ({ proto }: DescFile): FileDescriptorProto => proto;

/** Returns the file and all its imports, with dependencies first. */
function closure(file: DescFile, found = new Set<DescFile>()): Set<DescFile> {
  if (found.has(file)) return found;
  for (const dependency of file.dependencies) closure(dependency, found);
  return found.add(file);
}
