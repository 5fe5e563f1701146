/* SPDX-License-Identifier: Apache-2.0 */
/* Schema of a pod's volumes (core v1). */
#include "api/schema_core.h"

#define CORE "io.k8s.api.core.v1."

static const struct api_field local_ref_fields[] = {
    {"name", &api_schema_string, "Name of the object"},
};
const struct api_schema api_schema_local_ref = {
    .type = API_OBJECT,
    .definition = CORE "LocalObjectReference",
    .description = "The name of an object in the same namespace",
    .fields = local_ref_fields,
    .n_fields = ARRAY_SIZE(local_ref_fields),
    .atomic = true,
};

static const struct api_field object_field_fields[] = {
    {"apiVersion", &api_schema_string, "Version of the schema that the path is of"},
    {"fieldPath", &api_schema_string, "Path of the field: metadata.name, status.podIP, ...", true},
};
const struct api_schema api_schema_object_field = {
    .type = API_OBJECT,
    .definition = CORE "ObjectFieldSelector",
    .description = "Selects a field of the pod",
    .fields = object_field_fields,
    .n_fields = ARRAY_SIZE(object_field_fields),
    .atomic = true,
};

static const struct api_field resource_field_fields[] = {
    {"containerName", &api_schema_string, "Container; needed for volumes"},
    {"divisor", &api_schema_quantity, "Unit of what is shown; 1 by default"},
    {"resource", &api_schema_string, "limits.cpu, requests.memory, ...", true},
};
const struct api_schema api_schema_resource_field = {
    .type = API_OBJECT,
    .definition = CORE "ResourceFieldSelector",
    .description = "Selects a container's requests or limits",
    .fields = resource_field_fields,
    .n_fields = ARRAY_SIZE(resource_field_fields),
    .atomic = true,
};

static const struct api_field key_to_path_fields[] = {
    {"key", &api_schema_string, "Key to project", true},
    {"mode", &api_schema_int32, "Permission bits of the file; those of the volume by default"},
    {"path", &api_schema_string, "Path of the file, relative and without ..", true},
};
static const struct api_schema key_to_path =
    API_OBJECT_OF(key_to_path_fields, CORE "KeyToPath", "A key, and the file that it becomes");

static const struct api_field config_map_volume_fields[] = {
    {"defaultMode", &api_schema_int32, "Permission bits of files; 0644 by default"},
    {"items", API_LIST_OF(&key_to_path), "Keys that become files; all by default"},
    {"name", &api_schema_string, "Name of the config map"},
    {"optional", &api_schema_boolean, "The config map or its keys may be missing."},
};
static const struct api_schema config_map_volume =
    API_OBJECT_OF(config_map_volume_fields, CORE "ConfigMapVolumeSource", "A config map as files");

static const struct api_field secret_volume_fields[] = {
    {"defaultMode", &api_schema_int32, "Permission bits of files; 0644 by default"},
    {"items", API_LIST_OF(&key_to_path), "Keys that become files; all by default"},
    {"optional", &api_schema_boolean, "The secret or its keys may be missing."},
    {"secretName", &api_schema_string, "Name of the secret"},
};
static const struct api_schema secret_volume =
    API_OBJECT_OF(secret_volume_fields, CORE "SecretVolumeSource", "A secret as files");

static const struct api_field downward_file_fields[] = {
    {"fieldRef", &api_schema_object_field, "Field of the pod"},
    {"mode", &api_schema_int32, "Permission bits of the file"},
    {"path", &api_schema_string, "Path of the file, relative and without ..", true},
    {"resourceFieldRef", &api_schema_resource_field, "Requests or limits of a container"},
};
static const struct api_schema downward_file = API_OBJECT_OF(
    downward_file_fields, CORE "DownwardAPIVolumeFile", "A file with a field of the pod");

static const struct api_field downward_volume_fields[] = {
    {"defaultMode", &api_schema_int32, "Permission bits of files; 0644 by default"},
    {"items", API_LIST_OF(&downward_file), "Files of the volume"},
};
static const struct api_schema downward_volume = API_OBJECT_OF(
    downward_volume_fields, CORE "DownwardAPIVolumeSource", "Fields of the pod as files");

static const struct api_field config_map_projection_fields[] = {
    {"items", API_LIST_OF(&key_to_path), "Keys that become files; all by default"},
    {"name", &api_schema_string, "Name of the config map"},
    {"optional", &api_schema_boolean, "The config map or its keys may be missing."},
};
static const struct api_schema config_map_projection = API_OBJECT_OF(
    config_map_projection_fields, CORE "ConfigMapProjection", "A config map in a projected volume");

static const struct api_field secret_projection_fields[] = {
    {"items", API_LIST_OF(&key_to_path), "Keys that become files; all by default"},
    {"name", &api_schema_string, "Name of the secret"},
    {"optional", &api_schema_boolean, "The secret or its keys may be missing."},
};
static const struct api_schema secret_projection = API_OBJECT_OF(
    secret_projection_fields, CORE "SecretProjection", "A secret in a projected volume");

static const struct api_field downward_projection_fields[] = {
    {"items", API_LIST_OF(&downward_file), "Files of the volume"},
};
static const struct api_schema downward_projection =
    API_OBJECT_OF(downward_projection_fields, CORE "DownwardAPIProjection",
                  "Fields of the pod in a projected volume");

static const struct api_field token_projection_fields[] = {
    {"audience", &api_schema_string, "Whom the token is for; the API server by default"},
    {"expirationSeconds", &api_schema_int64, "How long it is valid; an hour by default"},
    {"path", &api_schema_string, "Path of the file, relative", true},
};
static const struct api_schema token_projection =
    API_OBJECT_OF(token_projection_fields, CORE "ServiceAccountTokenProjection",
                  "A token of the pod's service account");

static const struct api_field trust_projection_fields[] = {
    {"labelSelector", &api_schema_label_selector, "Bundles, with signerName"},
    {"name", &api_schema_string, "Bundle by name"},
    {"optional", &api_schema_boolean, "The bundle may be missing."},
    {"path", &api_schema_string, "Path of the file, relative", true},
    {"signerName", &api_schema_string, "Bundles of this signer"},
};
static const struct api_schema trust_projection = API_OBJECT_OF(
    trust_projection_fields, CORE "ClusterTrustBundleProjection", "Certificates of a trust bundle");

static const struct api_field projection_fields[] = {
    {"clusterTrustBundle", &trust_projection, "Certificates of a trust bundle"},
    {"configMap", &config_map_projection, "A config map"},
    {"downwardAPI", &downward_projection, "Fields of the pod"},
    {"secret", &secret_projection, "A secret"},
    {"serviceAccountToken", &token_projection, "A token of the pod's service account"},
};
static const struct api_schema projection =
    API_OBJECT_OF(projection_fields, CORE "VolumeProjection", "One source of a projected volume");

static const struct api_field projected_volume_fields[] = {
    {"defaultMode", &api_schema_int32, "Permission bits of files; 0644 by default"},
    {"sources", API_LIST_OF(&projection), "What the directory holds"},
};
static const struct api_schema projected_volume = API_OBJECT_OF(
    projected_volume_fields, CORE "ProjectedVolumeSource", "Several sources in one directory");

static const struct api_field empty_dir_fields[] = {
    {"medium", &api_schema_string, "Memory, or empty for the node's disk"},
    {"sizeLimit", &api_schema_quantity, "Most that it may hold"},
};
static const struct api_schema empty_dir = API_OBJECT_OF(
    empty_dir_fields, CORE "EmptyDirVolumeSource", "A directory that lives as long as the pod");

static const struct api_field host_path_fields[] = {
    {"path", &api_schema_string, "Path on the node", true},
    {"type", &api_schema_string,
     "What must be there: Directory, File, Socket, DirectoryOrCreate, ..."},
};
static const struct api_schema host_path =
    API_OBJECT_OF(host_path_fields, CORE "HostPathVolumeSource", "A file or directory of the node");

static const struct api_field nfs_fields[] = {
    {"path", &api_schema_string, "Path that the server exports", true},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
    {"server", &api_schema_string, "Name or address of the server", true},
};
static const struct api_schema nfs =
    API_OBJECT_OF(nfs_fields, CORE "NFSVolumeSource", "A directory of an NFS server");

static const struct api_field claim_volume_fields[] = {
    {"claimName", &api_schema_string, "Name of the claim, in the pod's namespace", true},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
};
static const struct api_schema claim_volume =
    API_OBJECT_OF(claim_volume_fields, CORE "PersistentVolumeClaimVolumeSource",
                  "A volume that a claim is bound to");

static const struct api_field typed_local_ref_fields[] = {
    {"apiGroup", &api_schema_string, "Group of the object; core when empty"},
    {"kind", &api_schema_string, "Kind of the object", true},
    {"name", &api_schema_string, "Name of the object", true},
};
static const struct api_schema typed_local_ref = {
    .type = API_OBJECT,
    .definition = CORE "TypedLocalObjectReference",
    .description = "An object in the same namespace",
    .fields = typed_local_ref_fields,
    .n_fields = ARRAY_SIZE(typed_local_ref_fields),
    .atomic = true,
};

static const struct api_field typed_ref_fields[] = {
    {"apiGroup", &api_schema_string, "Group of the object; core when empty"},
    {"kind", &api_schema_string, "Kind of the object", true},
    {"name", &api_schema_string, "Name of the object", true},
    {"namespace", &api_schema_string, "Namespace of the object"},
};
static const struct api_schema typed_ref =
    API_OBJECT_OF(typed_ref_fields, CORE "TypedObjectReference", "An object");

static const struct api_field volume_resources_fields[] = {
    {"limits", &api_schema_quantity_map, "Most that is allowed"},
    {"requests", &api_schema_quantity_map, "Least that is needed"},
};
static const struct api_schema volume_resources = API_OBJECT_OF(
    volume_resources_fields, CORE "VolumeResourceRequirements", "Least and most storage");

static const struct api_field claim_spec_fields[] = {
    {"accessModes", &api_schema_string_list,
     "ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod"},
    {"dataSource", &typed_local_ref, "Snapshot or claim to begin with"},
    {"dataSourceRef", &typed_ref, "Object to begin with"},
    {"resources", &volume_resources, "Least resources that the volume has"},
    {"selector", &api_schema_label_selector, "Volumes that may be bound"},
    {"storageClassName", &api_schema_string, "Name of the storage class"},
    {"volumeAttributesClassName", &api_schema_string, "Name of the volume attributes class"},
    {"volumeMode", &api_schema_string, "Filesystem or Block"},
    {"volumeName", &api_schema_string, "Volume that the claim is bound to"},
};
static const struct api_schema claim_spec =
    API_OBJECT_OF(claim_spec_fields, CORE "PersistentVolumeClaimSpec", "What storage is asked for");

static const struct api_field claim_template_fields[] = {
    {"metadata", &api_schema_object_meta, "Labels and annotations of the claim"},
    {"spec", &claim_spec, "What is asked for", true},
};
static const struct api_schema claim_template = API_OBJECT_OF(
    claim_template_fields, CORE "PersistentVolumeClaimTemplate", "A claim to be made");

static const struct api_field ephemeral_volume_fields[] = {
    {"volumeClaimTemplate", &claim_template, "The claim to be made"},
};
static const struct api_schema ephemeral_volume =
    API_OBJECT_OF(ephemeral_volume_fields, CORE "EphemeralVolumeSource",
                  "A volume of a claim that lives as long as the pod");

static const struct api_field csi_fields[] = {
    {"driver", &api_schema_string, "Name of the driver", true},
    {"fsType", &api_schema_string, "Filesystem to mount"},
    {"nodePublishSecretRef", &api_schema_local_ref, "Secret for the driver"},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
    {"volumeAttributes", &api_schema_string_map, "What the driver is told"},
};
static const struct api_schema csi = API_OBJECT_OF(
    csi_fields, CORE "CSIVolumeSource", "A volume of a CSI driver that lives as long as the pod");

static const struct api_field image_volume_fields[] = {
    {"pullPolicy", &api_schema_string, "Always, Never or IfNotPresent"},
    {"reference", &api_schema_string, "Name of the image"},
};
static const struct api_schema image_volume =
    API_OBJECT_OF(image_volume_fields, CORE "ImageVolumeSource", "An image's content");

static const struct api_field aws_ebs_fields[] = {
    {"fsType", &api_schema_string, "Filesystem to mount"},
    {"partition", &api_schema_int32, "Partition to mount"},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
    {"volumeID", &api_schema_string, "ID of the disk", true},
};
static const struct api_schema aws_ebs =
    API_OBJECT_OF(aws_ebs_fields, CORE "AWSElasticBlockStoreVolumeSource", "A disk of AWS");

static const struct api_field azure_disk_fields[] = {
    {"cachingMode", &api_schema_string, "None, ReadOnly or ReadWrite"},
    {"diskName", &api_schema_string, "Name of the disk", true},
    {"diskURI", &api_schema_string, "URI of the disk", true},
    {"fsType", &api_schema_string, "Filesystem to mount"},
    {"kind", &api_schema_string, "Shared, Dedicated or Managed"},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
};
static const struct api_schema azure_disk =
    API_OBJECT_OF(azure_disk_fields, CORE "AzureDiskVolumeSource", "A disk of Azure");

static const struct api_field azure_file_fields[] = {
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
    {"secretName", &api_schema_string, "Secret with the account's name and key", true},
    {"shareName", &api_schema_string, "Name of the share", true},
};
static const struct api_schema azure_file =
    API_OBJECT_OF(azure_file_fields, CORE "AzureFileVolumeSource", "A file share of Azure");

static const struct api_field cephfs_fields[] = {
    {"monitors", &api_schema_string_list, "Ceph's monitors", true},
    {"path", &api_schema_string, "Root of what is mounted"},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
    {"secretFile", &api_schema_string, "Path of the user's keyring"},
    {"secretRef", &api_schema_local_ref, "Secret of the user"},
    {"user", &api_schema_string, "Name of the user"},
};
static const struct api_schema cephfs =
    API_OBJECT_OF(cephfs_fields, CORE "CephFSVolumeSource", "A directory of Ceph");

static const struct api_field cinder_fields[] = {
    {"fsType", &api_schema_string, "Filesystem to mount"},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
    {"secretRef", &api_schema_local_ref, "Secret to connect with"},
    {"volumeID", &api_schema_string, "ID of the volume", true},
};
static const struct api_schema cinder =
    API_OBJECT_OF(cinder_fields, CORE "CinderVolumeSource", "A volume of OpenStack");

static const struct api_field fc_fields[] = {
    {"fsType", &api_schema_string, "Filesystem to mount"},
    {"lun", &api_schema_int32, "Number of the unit"},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
    {"targetWWNs", &api_schema_string_list, "Names of the targets"},
    {"wwids", &api_schema_string_list, "Identifiers of the volume"},
};
static const struct api_schema fc =
    API_OBJECT_OF(fc_fields, CORE "FCVolumeSource", "A Fibre Channel device");

static const struct api_field flex_volume_fields[] = {
    {"driver", &api_schema_string, "Name of the driver", true},
    {"fsType", &api_schema_string, "Filesystem to mount"},
    {"options", &api_schema_string_map, "What the driver is told"},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
    {"secretRef", &api_schema_local_ref, "Secret for the driver"},
};
static const struct api_schema flex_volume =
    API_OBJECT_OF(flex_volume_fields, CORE "FlexVolumeSource", "A volume of an executable driver");

static const struct api_field flocker_fields[] = {
    {"datasetName", &api_schema_string, "Name of the dataset"},
    {"datasetUUID", &api_schema_string, "UUID of the dataset"},
};
static const struct api_schema flocker =
    API_OBJECT_OF(flocker_fields, CORE "FlockerVolumeSource", "A volume of Flocker");

static const struct api_field gce_disk_fields[] = {
    {"fsType", &api_schema_string, "Filesystem to mount"},
    {"partition", &api_schema_int32, "Partition to mount"},
    {"pdName", &api_schema_string, "Name of the disk", true},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
};
static const struct api_schema gce_disk =
    API_OBJECT_OF(gce_disk_fields, CORE "GCEPersistentDiskVolumeSource", "A disk of GCE");

static const struct api_field git_repo_fields[] = {
    {"directory", &api_schema_string, "Directory to clone into"},
    {"repository", &api_schema_string, "URL of the repository", true},
    {"revision", &api_schema_string, "Commit to check out"},
};
static const struct api_schema git_repo =
    API_OBJECT_OF(git_repo_fields, CORE "GitRepoVolumeSource", "A clone of a Git repository");

static const struct api_field glusterfs_fields[] = {
    {"endpoints", &api_schema_string, "Name of the endpoints object", true},
    {"path", &api_schema_string, "Path of the volume", true},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
};
static const struct api_schema glusterfs =
    API_OBJECT_OF(glusterfs_fields, CORE "GlusterfsVolumeSource", "A volume of Gluster");

static const struct api_field iscsi_fields[] = {
    {"chapAuthDiscovery", &api_schema_boolean, "Authenticate at discovery."},
    {"chapAuthSession", &api_schema_boolean, "Authenticate at the session."},
    {"fsType", &api_schema_string, "Filesystem to mount"},
    {"initiatorName", &api_schema_string, "Name of the initiator"},
    {"iqn", &api_schema_string, "Name of the target", true},
    {"iscsiInterface", &api_schema_string, "Interface; default by default"},
    {"lun", &api_schema_int32, "Number of the unit", true},
    {"portals", &api_schema_string_list, "More portals of the target"},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
    {"secretRef", &api_schema_local_ref, "Secret for the authentication"},
    {"targetPortal", &api_schema_string, "Address of the target", true},
};
static const struct api_schema iscsi =
    API_OBJECT_OF(iscsi_fields, CORE "ISCSIVolumeSource", "An iSCSI disk");

static const struct api_field photon_disk_fields[] = {
    {"fsType", &api_schema_string, "Filesystem to mount"},
    {"pdID", &api_schema_string, "ID of the disk", true},
};
static const struct api_schema photon_disk =
    API_OBJECT_OF(photon_disk_fields, CORE "PhotonPersistentDiskVolumeSource", "A disk of Photon");

static const struct api_field portworx_fields[] = {
    {"fsType", &api_schema_string, "Filesystem to mount"},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
    {"volumeID", &api_schema_string, "ID of the volume", true},
};
static const struct api_schema portworx =
    API_OBJECT_OF(portworx_fields, CORE "PortworxVolumeSource", "A volume of Portworx");

static const struct api_field quobyte_fields[] = {
    {"group", &api_schema_string, "Group of the files"},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
    {"registry", &api_schema_string, "Addresses of the registries", true},
    {"tenant", &api_schema_string, "Tenant that owns the volume"},
    {"user", &api_schema_string, "User of the files"},
    {"volume", &api_schema_string, "Name of the volume", true},
};
static const struct api_schema quobyte =
    API_OBJECT_OF(quobyte_fields, CORE "QuobyteVolumeSource", "A volume of Quobyte");

static const struct api_field rbd_fields[] = {
    {"fsType", &api_schema_string, "Filesystem to mount"},
    {"image", &api_schema_string, "Name of the image", true},
    {"keyring", &api_schema_string, "Path of the keyring"},
    {"monitors", &api_schema_string_list, "Ceph's monitors", true},
    {"pool", &api_schema_string, "Name of the pool"},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
    {"secretRef", &api_schema_local_ref, "Secret of the user"},
    {"user", &api_schema_string, "Name of the user"},
};
static const struct api_schema rbd =
    API_OBJECT_OF(rbd_fields, CORE "RBDVolumeSource", "A block device of Ceph");

static const struct api_field scale_io_fields[] = {
    {"fsType", &api_schema_string, "Filesystem to mount"},
    {"gateway", &api_schema_string, "Address of the gateway", true},
    {"protectionDomain", &api_schema_string, "Name of the protection domain"},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
    {"secretRef", &api_schema_local_ref, "Secret of the user", true},
    {"sslEnabled", &api_schema_boolean, "Use TLS."},
    {"storageMode", &api_schema_string, "ThickProvisioned or ThinProvisioned"},
    {"storagePool", &api_schema_string, "Name of the pool"},
    {"system", &api_schema_string, "Name of the system", true},
    {"volumeName", &api_schema_string, "Name of the volume"},
};
static const struct api_schema scale_io =
    API_OBJECT_OF(scale_io_fields, CORE "ScaleIOVolumeSource", "A volume of ScaleIO");

static const struct api_field storageos_fields[] = {
    {"fsType", &api_schema_string, "Filesystem to mount"},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
    {"secretRef", &api_schema_local_ref, "Secret of the API"},
    {"volumeName", &api_schema_string, "Name of the volume"},
    {"volumeNamespace", &api_schema_string, "Namespace of the volume"},
};
static const struct api_schema storageos =
    API_OBJECT_OF(storageos_fields, CORE "StorageOSVolumeSource", "A volume of StorageOS");

static const struct api_field vsphere_fields[] = {
    {"fsType", &api_schema_string, "Filesystem to mount"},
    {"storagePolicyID", &api_schema_string, "ID of the storage policy"},
    {"storagePolicyName", &api_schema_string, "Name of the storage policy"},
    {"volumePath", &api_schema_string, "Path of the disk", true},
};
static const struct api_schema vsphere =
    API_OBJECT_OF(vsphere_fields, CORE "VsphereVirtualDiskVolumeSource", "A disk of vSphere");

static const struct api_field volume_fields[] = {
    {"awsElasticBlockStore", &aws_ebs, "A disk of AWS"},
    {"azureDisk", &azure_disk, "A disk of Azure"},
    {"azureFile", &azure_file, "A file share of Azure"},
    {"cephfs", &cephfs, "A directory of Ceph"},
    {"cinder", &cinder, "A volume of OpenStack"},
    {"configMap", &config_map_volume, "A config map as files"},
    {"csi", &csi, "A volume of a CSI driver that lives as long as the pod"},
    {"downwardAPI", &downward_volume, "Fields of the pod as files"},
    {"emptyDir", &empty_dir, "A directory that lives as long as the pod"},
    {"ephemeral", &ephemeral_volume, "A volume of a claim that lives as long as the pod"},
    {"fc", &fc, "A Fibre Channel device"},
    {"flexVolume", &flex_volume, "A volume of an executable driver"},
    {"flocker", &flocker, "A volume of Flocker"},
    {"gcePersistentDisk", &gce_disk, "A disk of GCE"},
    {"gitRepo", &git_repo, "A clone of a Git repository"},
    {"glusterfs", &glusterfs, "A volume of Gluster"},
    {"hostPath", &host_path, "A file or directory of the node"},
    {"image", &image_volume, "An image's content"},
    {"iscsi", &iscsi, "An iSCSI disk"},
    {"name", &api_schema_string, "Name of the volume, unique within the pod", true},
    {"nfs", &nfs, "A directory of an NFS server"},
    {"persistentVolumeClaim", &claim_volume, "A volume that a claim is bound to"},
    {"photonPersistentDisk", &photon_disk, "A disk of Photon"},
    {"portworxVolume", &portworx, "A volume of Portworx"},
    {"projected", &projected_volume, "Several sources in one directory"},
    {"quobyte", &quobyte, "A volume of Quobyte"},
    {"rbd", &rbd, "A block device of Ceph"},
    {"scaleIO", &scale_io, "A volume of ScaleIO"},
    {"secret", &secret_volume, "A secret as files"},
    {"storageos", &storageos, "A volume of StorageOS"},
    {"vsphereVolume", &vsphere, "A disk of vSphere"},
};
const struct api_schema api_schema_volume = API_OBJECT_OF(
    volume_fields, CORE "Volume", "A directory or device that containers of the pod can mount");
